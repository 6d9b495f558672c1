"""The command line, end to end, on real small data."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-c", "from tessella.cli import main; main()"]
SMALL = ["--dim", "2", "--blocks", "2", "--width", "16", "--layers", "1", "--noise-width", "16", "--no-progress"]


def tessella(*arguments: str, expect: int = 0) -> str:
    done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "nursery"
    said = tessella("train", "nursery", "--out", str(folder), "--steps", "60", "--validate-every", "30", *SMALL)
    assert "validation bound" in said
    return folder


def test_train_leaves_a_run_folder_that_continues(run):
    assert {"config.json", "metrics.jsonl", "model.safetensors", "curve.png"} <= {file.name for file in run.iterdir()}
    again = tessella("train", "nursery", "--out", str(run), "--steps", "60", "--validate-every", "30", *SMALL)
    assert "after 60 steps" in again
    differs = tessella("train", "nursery", "--out", str(run), "--steps", "70", *SMALL, expect=1)
    assert "steps" in differs


def test_evaluate_with_audits_and_record(run, tmp_path):
    """After 60 steps the bound is valid, and so loose that the audits say so."""
    asked = ["evaluate", str(run), "--samples", "20", "--rows", "200", "--audit"]
    said = tessella(*asked, "--record", str(tmp_path / "r.json"), expect=2)
    for part in ("ELBO", "IW-20", "pass  entropy floor", "FAIL  sum to one", "of the mass is not found", "sandwich"):
        assert part in said
    record = json.loads((tmp_path / "r.json").read_text())
    wanted = {"data", "partial", "method", "density", "preset", "seed", "elbo_nll", "iw_nll", "iw_samples", "stderr"}
    wanted |= {"steps", "seconds", "validation_nll"}
    assert wanted | {"floor", "command", "commit", "hardware"} <= set(record)
    assert record["floor"] - 3 * record["stderr"] <= record["iw_nll"] <= record["elbo_nll"]
    audits = {one["name"]: one for one in record["audits"]}
    assert set(audits) == {"sum to one", "entropy floor", "sandwich", "agreement"}
    assert audits["sum to one"]["value"]["total"] < 0.97
    assert "expected one of `tessella fit`" in tessella(*asked, "--data", "rows.csv", expect=1)


def test_samples_are_rows_with_known_categories(run, tmp_path):
    from tessella.data import load_table

    tessella("sample", str(run), "--rows", "25", "--out", str(tmp_path / "s.csv"))
    with (tmp_path / "s.csv").open() as file:
        header, *rows = list(csv.reader(file))
    schema = load_table("nursery").schema
    assert header == [variable.name for variable in schema.variables]
    assert schema.encode(rows).shape == (25, 8)


def test_data_commands():
    assert "nursery" in tessella("data", "list")
    assert "ok   mushroom" in tessella("data", "check", "mushroom")
    assert "expected one of" in tessella("data", "get", expect=1)
    assert "mushrooms" in tessella("data", "check", "mushrooms", expect=1)


def test_reproduce_draws_its_figures(tmp_path):
    tessella("reproduce", "dequantizers", "--out", str(tmp_path))
    assert (tmp_path / "dequantizers.png").stat().st_size > 10_000
    said = tessella(
        "reproduce", "quantized-2d", "--data", "two_moons", "--steps", "20", "--samples", "2", "--out", str(tmp_path)
    )
    assert "KL" in said
    folder = tmp_path / "quantized-2d-two_moons"
    assert {"two_moons.png", "two_moons-cells.png", "quantized-2d-two_moons.json"} <= {f.name for f in folder.iterdir()}


def test_errors_are_one_line_and_an_exit_code(tmp_path):
    said = tessella("evaluate", str(tmp_path), expect=1)
    assert "no config.json there" in said
    assert "Traceback" not in said
    said = tessella("train", "custom", "--name", "titanic", "--out", str(tmp_path / "t"), expect=1)
    assert "data: got 'titanic'; expected one of connect4" in said


def test_map_into_a_cell(tmp_path):
    said = tessella("reproduce", "cell-map", "--out", str(tmp_path))
    assert "0 of 100,000 outside" in said
    assert (tmp_path / "map-into-cell.png").exists()


def test_demo(tmp_path):
    said = tessella("demo", "--out", str(tmp_path), "--seconds", "10")
    for line in ("TabularFlow", "Chow-Liu tree", "independent columns", "floor", "five sampled rows", "oddest"):
        assert line in said
    assert (tmp_path / "model" / "report.html").stat().st_size > 50_000
    assert (tmp_path / "connect4.csv").read_text().count("\n") == 67558


def test_help_is_worth_reading():
    assert "Coupling blocks" in tessella("train", "custom", "--help")
    assert "importance samples" in tessella("evaluate", "--help")
