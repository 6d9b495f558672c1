"""`tessella fit`, `score`, `anomalies`, `sample` on a mixed table with missing values, as a new user would."""

import csv
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
from test_cli import tessella

from tessella.cli.fit import CHECKPOINTS


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """Colour says size; weight follows size; one row in ten has no weight; one row is odd."""
    draw, path = random.Random(0), tmp_path_factory.mktemp("data") / "things.csv"
    rows = []
    for _ in range(300):
        colour = draw.choice(["red", "green", "blue"])
        size = {"red": "small", "green": "small", "blue": "large"}[colour]
        weight = round(draw.gauss(10 if size == "small" else 50, 2), 2)
        rows.append([colour, size, "" if draw.random() < 0.1 else weight])
    rows[17] = ["red", "large", 90.0]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["colour", "size", "weight"], *rows])
    return path


@pytest.fixture(scope="module")
def model(table) -> Path:
    folder = table.parent / "model"
    said = tessella("fit", str(table), "--out", str(folder), "--minutes", "0.25", "--device", "cpu")
    assert "colour (categorical)" in said
    assert "weight (continuous)" in said
    return folder


def test_fit_compares_and_reports(model, tmp_path):
    overview = json.loads((model / "overview.json").read_text())
    assert [one["name"] for one in overview["likelihoods"]][-1] == "independent columns"
    assert overview["parts"] == {"train": 240, "validation": 30, "test": 30}
    assert "<html" in (model / "report.html").read_text()
    assert tessella("report", str(model), "--out", str(tmp_path / "r.html")).strip() == str(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == (model / "report.html").read_text()
    assert "no overview.json there" in tessella("report", str(tmp_path), expect=1)


def test_rows_given_values(model):
    said = tessella("sample", str(model), "--rows", "6", "--given", "colour", "blue", "weight", "48.5")
    assert said.count("blue") == said.count("48.5") == 6
    assert '"weight"' in said
    assert "expected a number" in tessella("sample", str(model), "--given", "weight", "heavy", expect=1)
    assert "impossible" in tessella("sample", str(model), "--given", "colour", "purple", expect=1)
    assert "did you mean 'colour'?" in tessella("sample", str(model), "--given", "color", "red", expect=1)


def test_rows_within_limits(model):
    said = tessella(
        "sample", str(model), "--rows", "9", "--given", "colour", "blue|red", "weight", "48:", "--seed", "1"
    )
    rows = [row for row in csv.reader(said.splitlines()) if len(row) == 3][1:]
    assert len(rows) == 9
    assert {row[0] for row in rows} <= {"blue", "red"}
    assert all(float(row[2]) >= 48 for row in rows)
    balanced = tessella("sample", str(model), "--rows", "9", "--balance", "colour", "--temperature", "0.5")
    assert [balanced.count(colour) for colour in ("red", "green", "blue")] == [3, 3, 3]


def test_what_is_missing_is_filled(model, table, tmp_path):
    tessella("impute", str(model), str(table), "--out", str(tmp_path / "full.csv"))
    with table.open() as before, (tmp_path / "full.csv").open() as after:
        pairs = list(zip(csv.reader(before), csv.reader(after), strict=True))
    assert all(new[:2] == old[:2] for old, new in pairs)
    assert all(float(new[2]) == float(old[2]) if old[2] else new[2] for old, new in pairs[1:])


def test_columns_that_a_file_does_not_have_are_filled_and_predicted(model, table, tmp_path):
    (tmp_path / "part.csv").write_text("colour\nblue\nred\n")
    said = tessella("impute", str(model), str(tmp_path / "part.csv"), "--most-likely")
    assert [row[1] for row in csv.reader(said.splitlines()) if len(row) == 3] == ["size", "large", "small"]
    tessella("predict", str(model), str(table), "--column", "size", "--out", str(tmp_path / "p.csv"))
    found = pyarrow.csv.read_csv(tmp_path / "p.csv").to_pylist()
    assert list(found[0]) == ["large", "small"]
    assert all(sum(row.values()) == pytest.approx(1) for row in found)
    colours = pyarrow.csv.read_csv(table)["colour"].to_pylist()
    right = [(row["large"] > 0.5) == (colour == "blue") for row, colour in zip(found, colours, strict=True)]
    assert sum(right) > 290
    assert tessella("predict", str(model), str(tmp_path / "part.csv")).count("\n") == 3, "the last column, a number"


def test_ctrl_c_keeps_the_best_model_so_far(table, tmp_path):
    command = [sys.executable, "-m", "tessella.cli", "fit", str(table), "--out", str(tmp_path), "--minutes", "30"]
    command += ["--density", "coupling"]  # which has no end of its own
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (tmp_path / CHECKPOINTS / "model.safetensors").exists():  # it is about to train
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    said, errors = running.communicate(timeout=120)
    assert running.returncode == 0, errors.decode()
    assert b"stopped by interrupted" in said
    assert "rows" in tessella("score", str(tmp_path), str(table))


def test_score_writes_a_line_a_row(model, table, tmp_path):
    said = json.loads(tessella("score", str(model), str(table), "--out", str(tmp_path / "s.csv"), "--json"))
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert said["rows"] == 300 == len(lines) - 1
    assert sum(map(float, lines[1:])) / 300 == pytest.approx(said["mean_log_likelihood"], abs=1e-3)


def test_a_fitted_table_is_audited(model, table, tmp_path):
    asked = ["evaluate", str(model), "--audit", "--samples", "16", "--data", str(table)]
    said = tessella(*asked, "--record", str(tmp_path / "r.json"))
    for part in ("300 rows", "pass  integral", "pass  sandwich", "pass  agreement"):
        assert part in said
    record = json.loads((tmp_path / "r.json").read_text())
    assert (record["rows"], record["iw_samples"]) == (300, 0), "it is exact, whatever is asked"
    assert [one["passed"] for one in record["audits"]] == [True, True, True]
    assert "got neither" in tessella("evaluate", str(model), expect=1)


def test_the_value_of_a_file_is_that_of_its_scores(model, table):
    found = json.loads(tessella("evaluate", str(model), "--data", str(table), "--json"))
    scored = json.loads(tessella("score", str(model), str(table), "--json"))
    assert found["iw_nll"] == pytest.approx(-scored["mean_log_likelihood"], abs=1e-5)
    assert found["stderr"] > 0
    assert found["audits"] == []


def test_the_odd_row_is_found(model, table):
    found = json.loads(tessella("anomalies", str(model), str(table), "--top", "3", "--json"))
    assert 17 in [row["row"] for row in found]
    assert "row" in tessella("anomalies", str(model), str(table), "--top", "3")


def test_samples_in_both_formats(model, tmp_path):
    tessella("sample", str(model), "--rows", "40", "--out", str(tmp_path / "s.parquet"))
    drawn = pyarrow.parquet.read_table(tmp_path / "s.parquet")
    assert drawn.column_names == ["colour", "size", "weight"]
    assert set(drawn["colour"].to_pylist()) <= {"red", "green", "blue"}
    assert tessella("sample", str(model), "--rows", "4").count("\n") == 5


def test_parquet_is_scored_like_csv(model, table, tmp_path):
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(table), tmp_path / "t.parquet")
    first = json.loads(tessella("score", str(model), str(table), "--json"))
    second = json.loads(tessella("score", str(model), str(tmp_path / "t.parquet"), "--json"))
    assert first == second


def test_errors_name_what_is_wrong(model, table, tmp_path):
    assert "no such file" in tessella("fit", str(tmp_path / "none.csv"), expect=1)
    (tmp_path / "t.xlsx").write_text("")
    assert "expected .csv or .parquet" in tessella("fit", str(tmp_path / "t.xlsx"), expect=1)
    (tmp_path / "other.csv").write_text("colour,size,weight\npurple,small,1.5\n")
    said = tessella("score", str(model), str(tmp_path / "other.csv"), expect=1)
    assert "colour" in said
    assert "purple" in said
