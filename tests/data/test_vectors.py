"""The continuous tables: laws over all five on small files of the published forms, and the real files where given."""

import gzip
import io
import lzma
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view
from tests.data.vector_files import (
    DISCRETE,
    SMALL,
    gas_text,
    hepmass_text,
    npy,
    power_meters,
    power_text,
    publish,
    written,
)

from tessella.cli.data import data as data_command
from tessella.data import VECTORS, VectorTable, available_vectors, load_vectors, locate
from tessella.data.vectors import parsing as parsing
from tessella.data.vectors.patches import draw

COLUMNS = {"power": 6, "gas": 8, "hepmass": 21, "miniboone": 43, "bsds300": 63}
PARTS = ("train", "validation", "test")
DRAWN = ("power", "gas", "bsds300")  # the others are taken as they are


def parts(table: VectorTable) -> list[torch.Tensor]:
    return [getattr(table, part) for part in PARTS]


def same(one: VectorTable, other: VectorTable) -> bool:
    return all(torch.equal(a, b) for a, b in zip(parts(one), parts(other), strict=True))


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Laws over all five


@pytest.mark.parametrize("name", SMALL)
def test_the_parts_have_the_published_form(name: str, empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = written(name, empty_data, monkeypatch)
    table = load_vectors(name)
    assert [tuple(part.shape) for part in parts(table)] == [(rows, COLUMNS[name]) for rows in sizes]
    assert all(part.dtype == torch.float32 and bool(part.isfinite().all()) for part in parts(table))
    assert (table.name, table.partial) == (name, None)
    assert (table.rebuilt is not None) == (name in DRAWN)


@pytest.mark.parametrize("name", [name for name in SMALL if name != "bsds300"])
def test_train_and_validation_are_standardised(name: str, empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(name, empty_data, monkeypatch)
    table = load_vectors(name)
    seen = torch.cat([table.train, table.validation]).double()
    assert float(seen.mean(0).abs().max()) < 1e-5
    assert torch.allclose(seen.std(0, correction=0), torch.ones(COLUMNS[name]), atol=1e-5)
    assert float((table.test.double().std(0) - 1).abs().min()) > 1e-5  # the test rows had no say


@pytest.mark.parametrize("name", SMALL)
def test_no_row_is_in_two_parts(name: str, empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = written(name, empty_data, monkeypatch)
    assert len(torch.cat(parts(load_vectors(name))).unique(dim=0)) == sum(sizes)


@pytest.mark.parametrize("name", SMALL)
def test_the_seed_decides_everything_that_is_drawn(
    name: str, empty_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(name, empty_data, monkeypatch)
    first = load_vectors(name, seed=3)
    assert same(first, load_vectors(name, seed=3))
    assert same(first, load_vectors(name, seed=4)) == (name not in DRAWN)


@pytest.mark.parametrize("name", SMALL)
def test_a_table_that_is_not_here_names_the_file_wanted(name: str, empty_data: Path) -> None:
    for file in SMALL[name]()[0]:
        with pytest.raises(FileNotFoundError, match=rf"put .*{file.removesuffix('.gz')}.*TESSELLA_DATA"):
            load_vectors(name)
    assert next(line for line in available_vectors() if line.name == name).where.startswith("not here: put ")


@pytest.mark.parametrize("name", SMALL)
def test_files_may_lie_in_a_subfolder(name: str, empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(name, empty_data / name, monkeypatch)
    here = next(line for line in available_vectors() if line.name == name)
    assert str(empty_data / name) in here.where
    assert load_vectors(name).train.shape[1] == here.variables == COLUMNS[name]


@pytest.mark.parametrize("name", SMALL)
def test_a_file_cut_short_is_named(name: str, empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(name, empty_data, monkeypatch)
    file = next(iter(SMALL[name]()[0]))
    (empty_data / file).write_bytes((empty_data / file).read_bytes()[:-2000])
    with pytest.raises(ValueError, match=rf"{file}.*not what was published"):
        load_vectors(name)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="continuous table 'nursery': not known; expected one of power, gas"):
        load_vectors("nursery")


# Prepared files


@pytest.mark.parametrize("name", SMALL)
def test_load_undoes_save(name: str, empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = written(name, empty_data, monkeypatch)
    table, path = load_vectors(name), empty_data / "table"
    table.save(path)
    again = VectorTable.load(path)
    assert same(again, table)
    assert replace(again, train=table.train, validation=table.validation, test=table.test) == table
    table.save(path, rows=29)
    fewer = VectorTable.load(path)
    assert [len(part) for part in parts(fewer)] == [min(29, rows) for rows in sizes]
    assert torch.equal(fewer.train, table.train[:29])
    assert fewer.partial == f"partial: at most 29 rows of each part, of {' + '.join(map(str, sizes))}"
    assert path.stat().st_size < 29 * 3 * COLUMNS[name] * 4 + 2000


def test_a_prepared_file_stands_in_for_the_raw_one(empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written("gas", empty_data, monkeypatch)
    table = load_vectors("gas", seed=5)
    (empty_data / "ethylene_CO.txt").unlink()
    table.save(empty_data / "gas.prepared.safetensors", rows=50)
    assert torch.equal(load_vectors("gas", seed=5).train, table.train[:50])
    here = next(line for line in available_vectors() if line.name == "gas")
    assert (here.rows, here.where) == (50 + 27 + 30, str(empty_data / "gas.prepared.safetensors"))
    with pytest.raises(FileNotFoundError, match=r"prepared file has seed 5; put ethylene_CO.txt"):
        load_vectors("gas", seed=6)
    written("gas", empty_data, monkeypatch)
    assert same(load_vectors("gas", seed=5), table)  # a complete table comes before a part
    table.save(empty_data / "gas.prepared.safetensors")
    (empty_data / "ethylene_CO.txt").write_bytes(b"not looked at")
    assert same(load_vectors("gas", seed=5), table)


def test_other_files_are_not_taken_for_prepared_ones(empty_data: Path) -> None:
    path = empty_data / "gas.prepared.safetensors"
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"gas.prepared.safetensors.*expected a file that VectorTable.save wrote"):
        load_vectors("gas")


def test_no_rows_cannot_be_saved(empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written("miniboone", empty_data, monkeypatch)
    with pytest.raises(ValueError, match="rows: got 0; expected at least 1"):
        load_vectors("miniboone").save(empty_data / "table", rows=0)


# Each preprocessing


def test_power_spreads_every_value_over_the_step_of_its_meter() -> None:
    rows = np.concatenate(parsing.power_from_raw(io.BytesIO(power_text()), generator())[:3])
    steps = np.array([0.001, 0.01, 1, 1, 1, 1])
    counts = np.floor(rows / steps + 1e-6).astype(int)
    complete = np.arange(340) % 17 != 0
    minute = (17 * 60 + 24 + np.arange(340)) % 1440
    expected = np.concatenate([power_meters(340)[:, [0, 2, 4, 5, 6]], minute[:, None]], axis=1)[complete]
    assert sorted(counts.tolist()) == sorted(expected.tolist())
    noise = rows / steps - counts
    assert np.allclose(noise.mean(0), 0.5, atol=5 / np.sqrt(12 * len(rows)))
    assert np.allclose(noise.std(0), 1 / np.sqrt(12), atol=0.05)


def test_the_compact_power_file_gives_the_rows_of_the_raw_one() -> None:
    minutes = 2000  # over midnight
    numbers = power_meters(minutes)
    keys = ("gap_x1000", "grp_x1000", "voltage_x100", "gi_x10", "sm1", "sm2", "sm3")
    packed = io.BytesIO()
    np.savez(packed, missing=np.arange(minutes) % 17 == 0, **dict(zip(keys, numbers.T, strict=True)))
    compact = parsing.power_from_compact(io.BytesIO(packed.getvalue()), generator())
    raw = parsing.power_from_raw(io.BytesIO(power_text(minutes)), generator())
    assert all(np.allclose(a, b, rtol=0, atol=1e-9) for a, b in zip(compact[:3], raw[:3], strict=True))


def test_power_is_downloaded_and_a_bad_download_does_not_stay(
    empty_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def error_page(url: str, path: Path) -> Path:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"<html>")
        return path

    monkeypatch.setattr(locate, "fetch", error_page)
    with pytest.raises(ValueError, match=r"power\+consumption.zip: cannot be unpacked"):
        load_vectors("power")
    assert list((empty_data.parent / "cache").iterdir()) == []


def test_gas_keeps_every_fourth_line_of_numbers() -> None:
    rows = np.concatenate(parsing.gas_from_raw(io.BytesIO(gas_text()), generator())[:3])
    lines = [line for line in gas_text().decode().splitlines()[1:] if "error" not in line]
    assert len(lines) == 1200
    expected = np.array([line.split()[11:19] for line in lines[3::4]], dtype=float)  # of each pair the second stays
    assert sorted(rows.tolist()) == sorted(expected.tolist())


def test_only_positive_correlations_remove_a_column() -> None:
    a, b, noise = generator().normal(size=(3, 500))
    rows = np.stack([a, b, -a, a + 0.01 * noise], axis=1)
    assert np.array_equal(parsing.uncorrelated(rows), rows[:, 1:])


def test_hepmass_keeps_varied_features_of_signal_rows() -> None:
    text = hepmass_text(600, 4, 1)
    found = parsing.hepmass_from_raw(io.BytesIO(text), io.BytesIO(hepmass_text(240, 5, 2)), generator())
    table = np.loadtxt(io.BytesIO(text), delimiter=",")
    expected = np.delete(table[table[:, 0] == 1, 1:27], DISCRETE, axis=1)
    assert np.array_equal(np.concatenate(found[:2]), expected)
    assert found.test.shape == (120, 21)


def test_hepmass_says_when_the_file_has_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "SIGNAL_ROWS", (200, 100))
    text = hepmass_text(600, 4, 1)
    found = parsing.hepmass_from_raw(io.BytesIO(text), io.BytesIO(text), generator())
    assert [len(part) for part in found[:3]] == [180, 20, 100]
    assert found.rebuilt is not None
    assert "first signal rows" in found.rebuilt


def test_pickles_are_refused(empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = npy(np.array([[{}] * 43] * 300, dtype=object))
    (empty_data / "data.npy").write_bytes(pickled)
    publish("miniboone", [pickled], (243, 27, 30), monkeypatch)
    with pytest.raises(ValueError, match=r"data.npy: not what was published: .*allow_pickle=False"):
        load_vectors("miniboone")


def test_values_that_are_not_finite_are_refused(empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = npy(np.full((300, 43), np.nan))
    (empty_data / "data.npy").write_bytes(data)
    publish("miniboone", [data], (243, 27, 30), monkeypatch)
    with pytest.raises(ValueError, match="got values that are not finite"):
        load_vectors("miniboone")


def test_every_patch_is_drawn_once() -> None:
    """All patches of two images, in some order, up to noise of one grey level."""
    images = [generator(k).integers(0, 256, size=size, dtype=np.uint8) for k, size in enumerate([(12, 20), (15, 9)])]
    truth = np.concatenate([sliding_window_view(image, (8, 8)).reshape(-1, 64) for image in images]) / 256
    truth = (truth - truth.mean(axis=1, keepdims=True))[:, :-1]
    rows = draw(images, len(truth), generator())
    gaps = np.abs(rows[:, None] - truth[None]).max(axis=2)
    assert sorted(gaps.argmin(axis=1).tolist()) == list(range(len(truth)))
    assert float(gaps.min(axis=1).max()) < 1 / 256
    assert rows.dtype == np.float32
    with pytest.raises(ValueError, match="got 2 images; expected enough for 1,000 different patches"):
        draw(images, 1000, generator())


def test_the_list_command_shows_them(capsys: pytest.CaptureFixture[str], empty_data: Path) -> None:
    data_command("list")
    shown = capsys.readouterr().out
    assert "bsds300      1,300,000 rows  63 real numbers" in shown
    assert all(name in shown for name in VECTORS)


# The real files


def given(file: str) -> Path:
    folder = os.environ.get("TESSELLA_DATA")
    if not folder or not (Path(folder) / file).is_file():
        pytest.skip(f"needs TESSELLA_DATA, a folder with {file} (see docs/data.md)")
    return Path(folder) / file


def test_power_has_the_published_rows() -> None:
    given("power.npz.xz")
    table = load_vectors("power")
    assert [len(part) for part in parts(table)] == [1_659_917, 184_435, 204_928]
    assert sum(map(len, parts(table))) == 2_049_280
    assert float(table.test.mean(0).abs().max()) < 0.02  # six standard errors of a standardised mean
    assert len(table.test[:, 1].unique()) > 0.98 * len(table.test)  # voltages hardly ever repeat


def test_the_part_of_miniboone_says_so() -> None:
    given("miniboone_first1523.npz.xz")
    table = load_vectors("miniboone")
    assert [len(part) for part in parts(table)] == [1_234, 137, 152]
    assert table.partial is not None
    assert "1,523 of 36,488" in table.partial
    arrays = np.load(io.BytesIO(lzma.decompress(given("miniboone_first1523.npz.xz").read_bytes())))
    corner = torch.corrcoef(torch.from_numpy(arrays["X"][:1371]).T)
    assert torch.allclose(torch.corrcoef(torch.cat([table.train, table.validation]).double().T), corner, atol=1e-5)


def test_patches_of_the_real_images_look_natural(monkeypatch: pytest.MonkeyPatch) -> None:
    given("bsds300_images.tar")
    sizes = (20_000, 1_000, 5_000)
    monkeypatch.setattr("tessella.data.vectors.patches.PATCHES", sizes)
    entry = VECTORS["bsds300"]
    monkeypatch.setitem(VECTORS, "bsds300", replace(entry, forms=(replace(entry.forms[0], rows=sizes),)))
    table = load_vectors("bsds300")
    assert [tuple(part.shape) for part in parts(table)] == [(rows, 63) for rows in sizes]
    correlation = torch.corrcoef(table.train.T)
    for away in (correlation[0, :8], correlation[0, ::8]):  # across and down, correlation falls with distance
        assert bool((away.diff() < 0).all())
    assert float(correlation[7, 8]) < float(correlation[0, 3])  # next in the row of numbers, far apart in the patch
    last = -table.train.sum(1)  # the pixel left out: all 64 sum to zero
    assert float(last.std()) == pytest.approx(float(table.train[:, 0].std()), rel=0.05)
    assert float(table.train.abs().max()) < 1


def test_the_gz_form_is_streamed(empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written("gas", empty_data, monkeypatch)
    plain = load_vectors("gas")
    (empty_data / "ethylene_CO.txt").unlink()
    (empty_data / "ethylene_CO.txt.gz").write_bytes(gzip.compress(gas_text()))
    assert same(plain, load_vectors("gas"))
