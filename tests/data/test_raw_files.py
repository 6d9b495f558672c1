"""The published formats: rebuilt from compact files, or small files of the same form."""

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.data.compress import compress
from tests.data.published import rebuilt, restored, zipped

from tessella.data import TABLES, Table, load_table
from tessella.data.locate import SHIPPED
from tessella.data.reading import RawFile, read_compact
from tessella.data.tables.formats import forests_from_compact, forests_from_raw, poker_from_compact, poker_from_raw
from tessella.data.tables.registry import Extent


def same(one: Table, other: Table) -> bool:
    parts = ("train", "validation", "test")
    return one.schema == other.schema and all(torch.equal(getattr(one, p), getattr(other, p)) for p in parts)


@pytest.mark.parametrize("name", ["connect4", "mushroom", "nursery"])
def test_the_published_text_gives_the_shipped_table(name: str, nothing_shipped: Path) -> None:
    (nothing_shipped / TABLES[name].raw[0].name).write_bytes(rebuilt(name))
    raw = load_table(name)
    (nothing_shipped / f"{name}.npz.xz").write_bytes((SHIPPED / f"{name}.npz.xz").read_bytes())
    (nothing_shipped / f"{name}.json").write_bytes((SHIPPED / f"{name}.json").read_bytes())
    assert same(raw, load_table(name))


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "nursery.data": bytes,
    "nursery.data.gz": gzip.compress,
    "nursery.data.Z": lambda data: compress(data, 16),
    "nursery.zip": lambda data: zipped("nursery.data", data),
    "nursery.zip with .Z": lambda data: zipped("folder/nursery.data.Z", compress(data, 16)),
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_packing_is_read(packing: str, nothing_shipped: Path) -> None:
    (nothing_shipped / packing.split()[0]).write_bytes(PACKINGS[packing](rebuilt("nursery")))
    assert load_table("nursery").train.shape == (10_368, 8)


@pytest.mark.parametrize("packing", ["nursery.data", "nursery.data.gz", "nursery.data.Z", "nursery.zip"])
def test_a_file_cut_short_is_named_with_what_to_do(packing: str, nothing_shipped: Path) -> None:
    whole = PACKINGS[packing](rebuilt("nursery"))
    (nothing_shipped / packing).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        ValueError, match=rf"{packing}.*(expected 8e0389c3|cut off or damaged).*delete it and get it again"
    ):
        load_table("nursery")


def test_a_zip_without_the_file_says_what_it_holds(nothing_shipped: Path) -> None:
    (nothing_shipped / "nursery.zip").write_bytes(zipped("chess.data", b""))
    with pytest.raises(ValueError, match=r"no nursery.data among its members index, chess.data"):
        load_table("nursery")


def small(monkeypatch: pytest.MonkeyPatch, name: str, texts: list[bytes], extent: Extent) -> None:
    """Let `name` be published as these texts."""
    raw = tuple(
        RawFile(file.name, "sha256:" + hashlib.sha256(text).hexdigest())
        for file, text in zip(TABLES[name].raw, texts, strict=True)
    )
    monkeypatch.setitem(TABLES, name, replace(TABLES[name], raw=raw, extent=extent))


def written(folder: Path, name: str, texts: list[bytes]) -> None:
    for file, text in zip(TABLES[name].raw, texts, strict=True):
        (folder / file.name).write_bytes(text)


def test_poker_hands_put_the_testing_file_first(empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testing, training = b"1,1,2,2,3,3,4,4,1,13,0\n" * 12, b"4,13,3,12,2,11,1,10,4,1,9\n" * 8
    small(monkeypatch, "pokerhands", [testing, training], Extent(20, 10, 13))
    written(empty_data, "pokerhands", [testing, training])
    table = load_table("pokerhands")
    rows = restored(table, seed=567)
    assert rows[0].tolist() == rows[11].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 0, 12]
    assert rows[12].tolist() == rows[19].tolist() == [3, 12, 2, 11, 1, 10, 0, 9, 3, 0]
    assert table.partial is None
    assert [v.name for v in table.schema.variables][:4] == ["S1", "C1", "S2", "C2"]


def test_forests_bins_are_digitize_over_linspace(empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    terrain = generator.integers(-173, 7000, (60, 10))
    bits = np.concatenate(
        [np.eye(4, dtype=int)[generator.integers(4, size=60)], np.eye(40, dtype=int)[np.arange(60) % 40]], 1
    )
    values = np.concatenate([terrain, bits, np.full((60, 1), 7)], 1)
    text = "".join(",".join(map(str, row)) + "\n" for row in values).encode()
    small(monkeypatch, "forests", [text], Extent(60, 54, 10))
    written(empty_data, "forests", [text])
    rows = restored(load_table("forests"), seed=678).numpy()
    for column in range(10):
        x = terrain[:, column]
        assert rows[:, column].tolist() == (np.digitize(x, np.linspace(x.min(), x.max() + 1, 11)) - 1).tolist()
    assert (rows[:, 10:] == bits).all()


def test_census_drops_caseid_and_constant_columns(empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"caseid,dAge,iConstant,iSex\n" + b"".join(
        b"%d,%d,5,%d\n" % (10_000 + k, k % 3 * 4, k % 2) for k in range(40)
    )
    small(monkeypatch, "uscensus90", [text], Extent(40, 2, 3))
    written(empty_data, "uscensus90", [text])
    table = load_table("uscensus90")
    assert [(v.name, v.categories) for v in table.schema.variables] == [("dAge", ("0", "4", "8")), ("iSex", ("0", "1"))]
    assert restored(table, seed=456).tolist() == [[k % 3, k % 2] for k in range(40)]
    assert (len(table.train), len(table.validation), len(table.test)) == (36, 2, 2)


MALFORMED = {
    "unknown word": (
        "nursery",
        b"usual,proper,perfect,1,convenient,convenient,nonprob,recommended,priority\n",
        "column 'form'",
    ),
    "missing field": ("nursery", b"usual,proper\n", "row 0: got 2 values; expected 9"),
    "not a number": ("forests", b"1,2,x\n", "could not convert string 'x'"),
    "too few numbers": ("forests", b"1,2,3\n", "got 3 columns of numbers; expected 55"),
    "too few rows": ("uscensus90", b"caseid,a\n1,0\n2,1\n", "got 2 rows, 1 variables.*expected 2,458,285 rows"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_file_is_named_with_its_fault(
    case: str, nothing_shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, text, fault = MALFORMED[case]
    small(monkeypatch, name, [text], TABLES[name].extent)
    written(nothing_shipped, name, [text])
    with pytest.raises(ValueError, match=rf"{TABLES[name].raw[0].name}: not what was published: .*{fault}"):
        load_table(name)


def test_poker_values_out_of_range_are_errors() -> None:
    with pytest.raises(ValueError, match="value 0 is neither a suit"):
        poker_from_raw(b"0,1,2,2,3,3,4,4,1,13,0\n", b"1,1,2,2,3,3,4,4,1,13,0\n")
    with pytest.raises(ValueError, match="column 'C5': code 13 has no category"):
        poker_from_raw(b"1,1,2,2,3,3,4,4,1,14,0\n", b"1,1,2,2,3,3,4,4,1,13,0\n")


def test_a_compact_file_is_verified_against_its_description(nothing_shipped: Path) -> None:
    data = (SHIPPED / "nursery.npz.xz").read_bytes()
    path = nothing_shipped / "nursery.npz.xz"
    path.write_bytes(data)
    with pytest.raises(FileNotFoundError, match=r"nursery.json: is missing; expected it beside the .npz.xz"):
        load_table("nursery")
    description = nothing_shipped / "nursery.json"
    description.write_bytes((SHIPPED / "nursery.json").read_bytes())
    assert len(load_table("nursery").train) == 10_368
    path.write_bytes(data[:-40])
    with pytest.raises(
        ValueError, match=r"nursery.npz.xz: the sha256 checksum of its 500 bytes is .*expected 413e9cde.*delete"
    ):
        load_table("nursery")
    for text in ("not json", "[]", json.dumps({"rows": 3})):
        description.write_text(text)
        with pytest.raises(ValueError, match=r"nursery.json: not the description of a compact file"):
            load_table("nursery")


def lines(values: np.ndarray) -> bytes:
    return "".join(",".join(map(str, row)) + "\n" for row in values.tolist()).encode()


def test_both_forms_of_poker_agree(given_data: Path) -> None:
    description, arrays = read_compact(given_data / "poker_partial.npz.xz")
    arrays = {name: array[:2000] for name, array in arrays.items()}
    parts = ("test100k", "train")
    texts = [lines(np.column_stack([arrays[f"X_{part}"], arrays[f"y_{part}"]])) for part in parts]
    raw, compact = poker_from_raw(*texts), poker_from_compact(description, arrays)
    assert raw.schema == compact.schema
    assert (raw.codes == compact.codes).all()


def test_both_forms_of_forests_agree(given_data: Path) -> None:
    description, arrays = read_compact(given_data / "covtype.npz.xz")
    arrays = {name: array[:2000] for name, array in arrays.items()}
    bits = np.eye(4, dtype=int)[arrays["wilderness"]], np.eye(40, dtype=int)[arrays["soil"]]
    raw = forests_from_raw(lines(np.column_stack([arrays["C"], *bits, arrays["y"]])))
    compact = forests_from_compact(description, arrays)
    assert raw.schema == compact.schema
    assert (raw.codes == compact.codes).all()
