"""The command line on Ray: row for row what one process says, whichever worker does it and however often it dies."""

import pickle
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.edges.edges_for_tests import Tessella, folder_of_things, things
from tests.edges.workers_for_tests import killed, threads

from tessella.cli import engines, score
from tessella.cli.files import reading
from tessella.cli.loaded import Loaded
from tessella.cli.sample import Draws

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'tessella[ray]'")
RAY = ("--engine", "ray")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of_things(tmp_path_factory.mktemp("things"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two workers on this machine."""
    with engines.connected(engines.EngineOptions("ray", workers=2)):
        yield


@pytest.fixture
def tessella(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tessella:
    monkeypatch.setattr(reading, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(reading, "ROWS_OF_PART", 150)
    monkeypatch.setattr("tessella.cli.sample.ROWS_AT_ONCE", 40)
    monkeypatch.setattr(engines, "RETRIES", 1)
    return Tessella(monkeypatch, capfd)


def strange(path: Path) -> Path:
    """`things` with a colour that nobody knows, in two rows of the last part."""
    path.mkdir()
    table = things()
    colours = table["colour"].to_pylist()
    colours[590:592] = ["mauve", "mauve"]
    pq.write_table(table.set_column(0, "colour", pa.array(colours)), path / "all.parquet", row_group_size=70)
    return path


@needs_ray
@pytest.mark.parametrize(
    ("command", "options", "ending"),
    [
        ("score", (), ".csv"),
        ("score", ("--unseen", "skip"), ".csv"),
        ("impute", (), ".parquet"),
        ("impute", ("--unseen", "skip", "--seed", "3"), ".csv"),
        ("predict", ("--column", "size", "--unseen", "skip"), ".parquet"),
        ("sample", ("--rows", "130"), ".parquet"),
        ("sample", ("--rows", "90", "--given", "colour", "red", "--temperature", "0.9"), ".csv"),
        ("anomalies", ("--top", "7", "--json"), None),
    ],
)
def test_row_for_row_as_one_process(
    command: str, options: Any, ending: str | None, cluster: None, tessella: Tessella, folder: Path, tmp_path: Path
):
    data = () if command == "sample" else (strange(tmp_path / "data") if "--unseen" in options else folder,)
    ask, said, written = (command, folder.parent / "model", *data, *options), [], []
    for how in ((), RAY):
        out = tmp_path / f"{len(said)}{ending}"
        tessella(*ask, *how, *(("--out", out) if ending else ()))
        said.append(tessella.out.replace(str(out), "out"))
        written.append(out.read_bytes() if ending else b"")
        if "--unseen" in options:
            assert "2 of 600 rows left out: 590, 591" in tessella.err
    assert said[0] == said[1]
    assert written[0] == written[1]


@needs_ray
def test_a_worker_that_dies_is_replaced(
    cluster: None, tessella: Tessella, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Once, and nobody notices; again and again, and the part is named, and nothing is there but what was before."""
    model, out, deaths = folder.parent / "model", tmp_path / "out.csv", tmp_path / "deaths"
    deaths.mkdir()
    tessella("score", model, folder, "--out", out)
    expected = out.read_bytes()
    out.write_text("of yesterday\n")
    monkeypatch.setattr(score, "_scores", partial(killed, score._scores, deaths, 200, 3))
    said = tessella("score", model, folder, "--out", out, *RAY, expect=1)
    assert f"{folder / '1.parquet'} (rows 200 to 339 of the table): no worker could finish it, in 2 attempts" in said
    assert len(list(deaths.iterdir())) == 2
    assert out.read_text() == "of yesterday\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deaths", "out.csv"]
    tessella("score", model, folder, "--out", out, *RAY)
    assert len(list(deaths.iterdir())) == 3
    assert out.read_bytes() == expected


@needs_ray
def test_errors_are_those_of_one_process(cluster: None, tessella: Tessella, folder: Path, tmp_path: Path):
    ask = ("impute", folder.parent / "model", strange(tmp_path / "data"), "--out", tmp_path / "out.parquet")
    there, here = (tessella(*ask, *engine, expect=1).splitlines()[-1] for engine in (RAY, ()))  # after any progress
    assert there == here
    assert f"{tmp_path / 'data'}, row 590, column 'colour'" in tessella.err
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert "threads: got 99 for each worker; the Ray cluster has 2" in tessella(*ask, *RAY, "--threads", "99", expect=1)


@needs_ray
def test_workers_have_the_threads_that_are_theirs(cluster: None):
    for number in (2, 1):
        options = engines.EngineOptions("ray", threads=number)
        assert [*engines.spread(threads, [Draws(0, 1), Draws(1, 1)], options)] == [number, number]


def test_a_model_travels_as_the_name_of_its_folder(folder: Path, tmp_path: Path):
    model = shutil.copytree(folder.parent / "model", tmp_path / "model")
    before, description = pickle.dumps(Loaded(model)), model / "estimator.json"
    description.write_text(description.read_text() + "\n")
    now = pickle.dumps(Loaded(model))
    assert len(now) < 1000
    assert pickle.loads(now) is pickle.loads(now)
    with pytest.raises(ValueError, match=r"got another model on .*; expected a folder that all machines see"):
        pickle.loads(before)


def test_what_ray_needs(tessella: Tessella, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model, table = folder.parent / "model", tmp_path / "t.csv"
    table.write_text("colour\nred\n")
    assert "got a CSV file for the engine ray; expected Parquet" in tessella("score", model, table, *RAY, expect=1)
    ask = ("score", model, folder)
    assert "workers: got it for the local engine" in tessella(*ask, "--workers", "2", expect=1)
    assert "threads: got 0; expected at least 1" in tessella(*ask, *RAY, "--threads", "0", expect=1)
    nobody = "127.0.0.1:1"
    if find_spec("ray"):
        monkeypatch.setattr("ray.is_initialized", lambda: False)
        assert f"address: got '{nobody}'" in tessella(*ask, *RAY, "--address", nobody, expect=1)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert 'ray, which is not installed; try pip install "tessella[ray]"' in tessella(*ask, *RAY, expect=1)
