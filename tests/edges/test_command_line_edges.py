"""Careless and hostile lines, files and keys."""

import csv
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.edges.edges_for_tests import HEADER, Tessella, fitted, rows_of_things, write

from tessella.cli.files import escaped, replacing
from tessella.cli.fit import next_commands
from tessella.estimators import TabularFlow
from tessella.version import __version__


@pytest.fixture(scope="module")
def things(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("edges") / "things.csv", rows_of_things(120), HEADER)


@pytest.fixture(scope="module")
def model(things) -> Path:
    return fitted(things, things.parent / "model")


@pytest.fixture
def tessella(monkeypatch, capfd) -> Tessella:
    return Tessella(monkeypatch, capfd)


def strange(path, rows=6):
    """The third row has a colour, the fifth a size that nobody saw."""
    found = rows_of_things(rows, seed=1)
    found[2][0], found[4][1] = "purple", 77
    return write(path, found, HEADER)


def test_an_unseen_value_is_named_by_line_and_column(tessella, model, tmp_path):
    said = tessella("score", model, strange(tmp_path / "t.csv"), "--out", tmp_path / "s.csv", expect=1)
    assert "t.csv, line 4, column 'colour': value 'purple' was not seen" in said
    assert "--unseen skip" in said
    assert list(tmp_path.iterdir()) == [tmp_path / "t.csv"], "no file that looks complete"


def test_rows_with_unseen_values_are_skipped_and_counted(tessella, model, tmp_path):
    data = strange(tmp_path / "t.csv")
    said = tessella("score", model, data, "--unseen", "skip", "--out", tmp_path / "s.csv")
    assert "2 of 6 rows left out: 2, 4 (the first: " in said
    assert "t.csv, line 4); columns 'colour' (1), 'size' (1)" in said
    lines = (tmp_path / "s.csv").read_text().splitlines()[1:]
    assert [bool(line) for line in lines] == [True, True, False, True, False, True]
    told = json.loads(tessella("score", model, data, "--unseen", "skip", "--json"))
    assert (told["rows"], told["unseen"]["first_rows"]) == (4, [2, 4])
    assert {row["row"] for row in json.loads(tessella("anomalies", model, data, "--unseen", "skip", "--json"))} == {
        0,
        1,
        3,
        5,
    }


def test_unseen_values_are_taken_for_missing_where_some_were(tessella, model, tmp_path):
    rows = rows_of_things(4, seed=1)
    rows[1][4] = "never"
    data = write(tmp_path / "t.csv", rows, HEADER)
    assert "rows whose values were taken for missing: 1" in tessella("score", model, data, "--unseen", "missing")
    said = tessella("score", model, strange(tmp_path / "u.csv"), "--unseen", "missing", expect=1)
    assert "line 4, column 'colour': value missing was not seen" in said


def test_impute_and_predict_keep_rows_in_their_places(tessella, model, tmp_path):
    data = strange(tmp_path / "t.csv")
    tessella("impute", model, data, "--unseen", "skip", "--out", tmp_path / "i.csv")
    with (tmp_path / "i.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    assert [row[0] for row in rows] == [str(row[0]) if i != 2 else "purple" for i, row in enumerate(_read(data))]
    tessella("impute", model, data, "--unseen", "missing", "--out", tmp_path / "m.csv")
    assert "purple" not in (tmp_path / "m.csv").read_text()
    tessella("predict", model, data, "--column", "member", "--unseen", "skip", "--out", tmp_path / "p.csv")
    assert [line == "," for line in (tmp_path / "p.csv").read_text().splitlines()[1:]] == [
        False,
        False,
        True,
        False,
        True,
        False,
    ]
    assert "1 of 6 rows left out" in tessella("predict", model, data, "--column", "colour", "--unseen", "skip")


def _read(path):
    with path.open() as file:
        return list(csv.reader(file))[1:]


def test_conditions_are_typed_as_samples_print_them(tessella, model):
    said = tessella("sample", model, "--rows", "4", "--given", "member", "true")
    assert said.count("true") == 4
    assert "did you mean 'colour'?" in tessella("sample", model, "--given", "Colour", "red", expect=1)
    assert "did you mean 'red'?" in tessella("sample", model, "--given", "colour", "Red", expect=1)


def test_bad_numbers_are_refused(tessella, model, things):
    assert "top: got -3; expected at least 1" in tessella("anomalies", model, things, "--top", "-3", expect=1)


def test_a_model_that_saw_no_file_reads_files_by_its_columns_types(tessella, tmp_path):
    days = pd.date_range("2026-01-01", periods=40).date
    frame = pd.DataFrame({"d": days, "b": [True, False] * 20, "i": [1, 2, 3, 4] * 10, "s": ["01", "02"] * 20})
    frame["x"] = np.random.default_rng(0).normal(size=40)
    flow = TabularFlow(width=8, max_steps=1, device="cpu", threads=1, random_state=0, progress=False).fit(frame)
    flow.save(tmp_path / "model")
    frame.to_csv(tmp_path / "t.csv", index=False)
    said = json.loads(tessella("score", tmp_path / "model", tmp_path / "t.csv", "--json"))
    assert said["mean_log_likelihood"] == pytest.approx(flow.score(frame))


def test_semicolons_are_scored_like_commas(tessella, model, things, tmp_path):
    (tmp_path / "t.csv").write_text(things.read_text().replace(",", ";"))
    first = json.loads(tessella("score", model, things, "--json"))
    assert json.loads(tessella("score", model, tmp_path / "t.csv", "--json")) == first
    assert "parted by semicolons" in tessella("score", model, tmp_path / "t.csv")


def test_formulas_are_escaped_where_training_saw_none(tessella, tmp_path):
    table = pa.table({"a": ["=cmd|' /C calc'!A0", "x", None], "b": ["-", "+1", "y"], "n": [-1, 2, 3]})
    assert escaped(table, "auto", {"b"}).to_pydict() == {
        "a": ["'=cmd|' /C calc'!A0", "x", None],
        "b": ["-", "+1", "y"],
        "n": [-1, 2, 3],
    }
    assert escaped(table, "escape", {"b"})["b"].to_pylist() == ["'-", "'+1", "y"]
    assert escaped(table, "keep", ()).equals(table)


def test_a_file_is_whole_or_not_there(tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("old")

    def write_half() -> None:
        with replacing(target) as part:
            part.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
    with replacing(target) as part:
        part.write_text("new")
    assert target.read_text() == "new"


def test_suggested_commands_can_be_pasted():
    out, data = Path("my model; rm -rf ~"), Path("it's.csv")
    assert shlex.split(next_commands(out, data)[0]) == ["tessella", "anomalies", str(out), str(data)]
    assert shlex.split(next_commands(out, data)[1])[2] == str(out)


def test_version_and_help_are_light(tessella):
    assert tessella("--version").strip() == f"tessella {__version__}"
    script = (
        "import sys\nfrom tessella.cli import main\nsys.argv[1:] = ['--help']\ntry:\n    main()\nexcept SystemExit:\n"
    )
    script += "    print([name for name in ('torch', 'numpy', 'pyarrow') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")
    assert "impute" in done.stdout


def test_ctrl_c_while_it_imports_leaves_no_traceback(tessella, monkeypatch):
    """Everything that takes time is imported inside `main`."""

    def interrupted(_: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["tessella.cli.main"], "commands", interrupted)
    assert tessella("fit", "data.csv", expect=130) == "tessella: interrupted\n"
