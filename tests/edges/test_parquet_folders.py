"""The command line on a folder of Parquet files: in pieces, row for row as on the whole, and whole files or none."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.edges.edges_for_tests import Tessella, folder_of_things, things

from tessella.cli.files import reading
from tessella.estimators import TabularFlow


@pytest.fixture
def tessella(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tessella:
    monkeypatch.setattr(reading, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr("tessella.cli.sample.ROWS_AT_ONCE", 40)
    return Tessella(monkeypatch, capfd)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of_things(tmp_path_factory.mktemp("things"))


def test_a_folder_is_fitted_in_pieces(tessella: Tessella, folder: Path, tmp_path: Path):
    out = tmp_path / "model"
    tessella("fit", folder, "--out", out, "--minutes", "0.02", "--device", "cpu", "--memory", "0", "--json")
    said = json.loads(tessella.out)
    assert said["notes"][0].startswith("streaming 600 rows")
    assert list(said["left_out"]) == ["id"]
    assert said["rows"] == 600
    overview = json.loads((out / "overview.json").read_text())
    assert sum(overview["parts"].values()) == overview["rows"] == 600
    assert overview["likelihoods"][0]["learned_from"] == overview["parts"]["train"]
    assert len(TabularFlow.load(out).score_samples(things().drop_columns(["id"]))) == 600
    assert "column_types: got 'colur'" in tessella(
        "fit", folder, "--out", out, "--memory", "0", "--types", "colur", "categorical", expect=1
    )


def test_answers_in_pieces_are_those_of_the_whole(tessella: Tessella, folder: Path, tmp_path: Path):
    model = folder.parent / "model"
    flow, whole = TabularFlow.load(model, "cpu"), things().drop_columns(["id"])
    tessella("score", model, folder, "--out", tmp_path / "scores.csv")
    scores = pyarrow.csv.read_csv(tmp_path / "scores.csv")["log_likelihood"].to_numpy()
    np.testing.assert_allclose(scores, flow.score_samples(whole), atol=1e-5)
    tessella("predict", model, folder, "--column", "colour", "--out", tmp_path / "p.parquet")
    found, expected = pq.read_table(tmp_path / "p.parquet"), flow.predict_proba(whole, "colour")
    for name in ("red", "green", "blue"):
        np.testing.assert_allclose(found[name].to_numpy(), expected[name].to_numpy(), atol=1e-5)
    tessella("anomalies", model, folder, "--top", "5", "--json")
    odd = json.loads(tessella.out)
    assert [row["row"] for row in odd] == flow.anomalies(whole, top=5)["row"].to_pylist()


def test_filled_rows_are_the_rows_with_their_gaps_filled(tessella: Tessella, folder: Path, tmp_path: Path):
    tessella("impute", folder.parent / "model", folder, "--out", tmp_path / "filled.parquet")
    filled, whole = pq.read_table(tmp_path / "filled.parquet"), things()
    assert filled["gaps"].null_count == 0
    assert filled.filter(whole["gaps"].is_valid())["gaps"] == whole["gaps"].drop_null()
    assert filled["colour"] == whole["colour"]
    tessella("sample", folder.parent / "model", "--rows", "100", "--out", tmp_path / "drawn.parquet")
    drawn = pq.read_table(tmp_path / "drawn.parquet")
    assert len(drawn) == 100
    assert not drawn.slice(0, 20).equals(drawn.slice(40, 20))


@pytest.mark.parametrize("command", ["score", "impute", "predict"])
def test_what_is_not_whole_is_not_there(command: str, tessella: Tessella, folder: Path, tmp_path: Path):
    """The last file has a colour that nobody knows: what was written before stays, and nothing half-done."""
    data, out = tmp_path / "data", tmp_path / "out.csv"
    data.mkdir()
    out.write_text("of yesterday\n")
    for i in range(3):
        part = things().slice(200 * i, 200)
        colour = part["colour"] if i < 2 else pa.array(["mauve"] * 200)
        pq.write_table(part.set_column(0, "colour", colour), data / f"{i}.parquet")
    ask = (command, folder.parent / "model", data, "--out", out)
    last = ("--column", "size") if command == "predict" else ()
    assert f"{data}, row 400, column 'colour'" in tessella(*ask, *last, expect=1)
    assert out.read_text() == "of yesterday\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out.csv"]
    tessella(*ask, *last, "--unseen", "skip")
    assert len(out.read_text().splitlines()) == 601


@pytest.mark.parametrize("command", ["fit", "score"])
def test_a_folder_of_nothing(command: str, tessella: Tessella, folder: Path, tmp_path: Path):
    model = [folder.parent / "model"] if command == "score" else []
    assert "got a folder without .parquet files" in tessella(command, *model, tmp_path, expect=1)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    assert f"{tmp_path / 'a.parquet'}: cannot be read" in tessella(command, *model, tmp_path, expect=1)
