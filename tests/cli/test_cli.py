"""The command line, end to end, on real small data."""

import csv
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from tessella.cli import main

LEGACY = Path(__file__).parent.parent / "legacy" / "0.1.0" / "run"
PROGRAM = [sys.executable, "-c", "from tessella.cli import main; main()"]
SMALL = ["--preset", "small", "--density.groups", "2", "--density.width", "16", "--noise.width", "16", "--no-progress"]
# The paper's profile and noise, and couplings that know no cells: a loose bound.
SMALL += ["--cells.squashing", "softsign", "--cells.placement", "profiles", "--noise.base", "gaussian"]
SMALL += ["--set", "density=groups", "--density.sweeps", "1", "--noise.blocks", "2"]


def tessella(*arguments: str, expect: int = 0) -> str:
    """What a command says, in this process: it would take longer to start another than what most commands do."""
    said, code, precision = TextIOWrapper(BytesIO(), "utf-8", write_through=True), 0, torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    with redirect_stdout(said), redirect_stderr(said), patch.object(sys, "argv", ["tessella", *arguments]):
        try:
            main()
        except SystemExit as error:
            code = int(error.code or 0)
        finally:
            torch.set_default_dtype(precision)
    text = said.buffer.getvalue().decode()
    assert code == expect, text
    return text


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
    assert wanted | {"entropy_floor", "command", "commit", "hardware"} <= set(record)
    assert record["entropy_floor"] - 3 * record["stderr"] <= record["iw_nll"] <= record["elbo_nll"]
    audits = {one["name"]: one for one in record["audits"]}
    assert set(audits) == {"sum to one", "entropy floor", "sandwich", "agreement"}
    assert audits["sum to one"]["value"]["total"] < 0.97
    assert "expected one of `tessella fit`" in tessella(*asked, "--data", "rows.csv", expect=1)


def test_samples_are_rows_with_known_categories(run, tmp_path):
    from tessella.data import load_table

    tessella("sample", str(run), "--rows", "25", "--out", str(tmp_path / "s.csv"))
    with (tmp_path / "s.csv").open() as file:
        header, *rows = list(csv.reader(file))
    encoding = load_table("nursery").encoding
    assert header == [column.name for column in encoding.columns]
    assert encoding.encode(list(zip(*rows, strict=True)))[0].shape == (25, 8)


OWN = "size,colour,weight\n" + "".join(f"{'SML'[i % 3]},{'rgb'[i % 2]},{i % 7 + i / 100}\n" for i in range(200))


@pytest.mark.parametrize("method", ["voronoi", "simplex"])
def test_a_table_of_ones_own_is_trained_and_evaluated(method, tmp_path):
    """Categories and a number, by the recipe that is the same on all tables, made small."""
    (tmp_path / "shop.csv").write_text(OWN)
    small = [
        "--density.groups",
        "1",
        "--density.width",
        "8",
        "--noise.width",
        "8",
        "--noise.blocks",
        "1",
        "--steps",
        "4",
    ]
    asked = ["train", str(tmp_path / "shop.csv"), "--method", method, "--out", str(tmp_path / "run"), "--no-progress"]
    said = tessella(*asked, *small, "--warmup-steps", "0", "--batch-size", "32", "--accelerator", "cpu")
    assert "shop: validation bound" in said
    assert "20 rows" in tessella("evaluate", str(tmp_path / "run"), "--samples", "5")
    drawn = tessella("sample", str(tmp_path / "run"), "--rows", "2")
    assert '"size","colour","weight"' in drawn
    refused = tessella(
        "train", str(tmp_path / "shop.csv"), "--method", "transformer", "--out", str(tmp_path / "t"), expect=1
    )
    assert "got 1 columns of numbers; expected categories only" in refused


def test_data_commands():
    said = tessella("data", "list")
    assert "nursery" in said
    assert "bsds300        1,300,000 rows  63 real numbers" in said
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
    said = tessella("train", "titanic", "--out", str(tmp_path / "t"), expect=1)
    assert "table 'titanic': not known; expected one of connect4" in said
    said = tessella("evaluate", str(LEGACY), expect=1)
    assert "a run of tessella 0.1.0" in said


def test_map_into_a_cell(tmp_path):
    said = tessella("reproduce", "cell-map", "--out", str(tmp_path))
    assert "0 of 100,000 outside" in said
    assert (tmp_path / "map-into-cell.png").exists()


def test_demo(tmp_path):
    said = tessella("demo", "--out", str(tmp_path), "--seconds", "10")
    for line in ("TabularFlow", "Chow-Liu tree", "independent columns", "entropy floor", "five sampled rows", "oddest"):
        assert line in said
    assert (tmp_path / "model" / "report.html").stat().st_size > 50_000
    assert (tmp_path / "connect4.csv").read_text().count("\n") == 67558


def test_help_is_worth_reading():
    said = tessella("train", "mushroom", "--help")
    assert "Of variables, in a sweep" in said
    assert "--cells.dim" in said
    assert "--cells.box" not in tessella("train", "mushroom", "--method", "simplex", "--help")
    assert "importance samples" in tessella("evaluate", "--help")
