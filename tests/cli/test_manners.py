"""Results on standard output, everything else on standard error, and nothing there with --json."""

import json
import random
import subprocess
from pathlib import Path

import pytest
from test_cli import PROGRAM


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    draw, path = random.Random(0), tmp_path_factory.mktemp("data") / "pairs.csv"
    rows = ["a,b", *(f"{draw.choice('xyz')},{draw.gauss(0, 1):.3f}" for _ in range(120))]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def fitted(table) -> tuple[Path, subprocess.CompletedProcess[str]]:
    out = table.parent / "model"
    arguments = ["--minutes", "0.05", "--device", "cpu", "--threads", "1", "--json"]
    return out, run("fit", str(table), "--out", str(out), *arguments)


def test_fit_with_json_prints_json_alone(fitted):
    said = json.loads(fitted[1].stdout)
    assert (said["rows"], said["threads"]) == (120, 1)
    assert fitted[1].stderr == ""


@pytest.mark.parametrize("command", ["score", "anomalies"])
def test_json_alone(fitted, table, command: str):
    done = run(command, str(fitted[0]), str(table), "--json")
    json.loads(done.stdout)
    assert done.stderr == ""


def test_progress_goes_to_standard_error_and_is_told_in_lines(fitted, table, tmp_path):
    done = run("fit", str(table), "--out", str(tmp_path), "--minutes", "0.05", "--device", "cpu", "--threads", "1")
    assert "training: " in done.stderr
    assert "\r" not in done.stderr
    assert "steps/s" not in done.stdout


def test_sampled_rows_are_alone_on_standard_output(fitted):
    header, *rows = run("sample", str(fitted[0]), "--rows", "3000").stdout.splitlines()
    assert header == '"a","b"'
    assert len(rows) == 3000
