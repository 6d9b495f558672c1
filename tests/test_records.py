"""A record says what was typed, and what lies in results/ is complete."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tessella import records

RESULTS = sorted((Path(__file__).parent.parent / "results").glob("*.json"))


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.name)
def test_every_result_says_where_it_comes_from(file: Path):
    record = json.loads(file.read_text())
    assert all(record[key] for key in ("command", "commit", "hardware", "time", "torch"))
    assert record["seed"] is not None


def test_the_command_is_the_one_that_was_typed(tmp_path):
    (tmp_path / "measure.py").write_text("from tessella import records; print(records.provenance()['command'])")
    module = [sys.executable, "-m", "measure", "--fast"]
    said = subprocess.check_output(module, cwd=tmp_path, text=True)
    assert said.strip() == "python -m measure --fast"
    said = subprocess.check_output([sys.executable, str(tmp_path / "measure.py"), "7"], text=True)
    assert said.strip() == "measure.py 7"


def test_runs_that_share_a_machine_say_so(monkeypatch):
    monkeypatch.delenv("TESSELLA_RUNS_AT_ONCE", raising=False)
    alone = records.hardware()
    monkeypatch.setenv("TESSELLA_RUNS_AT_ONCE", "4")
    assert records.hardware() == f"{alone}; 4 runs at once"
    monkeypatch.setenv("TESSELLA_RUNS_AT_ONCE", "many")
    with pytest.raises(ValueError, match="TESSELLA_RUNS_AT_ONCE: got 'many'; expected how many"):
        records.hardware()
