"""What a competitor is given and what it leaves; the peers themselves where they are installed."""

import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.peers.methods.exchange import HELD_OUT, REPORT, SAMPLED, TASK, TRAIN, Fitted, Task, serve
from benchmarks.peers.running import PROGRAMS


def rows(count: int, names: tuple[str, ...]) -> pd.DataFrame:
    days = pd.Series(pd.date_range("2020-01-01", periods=count).astype("datetime64[ns]"))
    return pd.DataFrame({"n": np.arange(count) % 7 / 2, "day": days, "word": np.resize(names, count)})


def again(train: pd.DataFrame, task: Task) -> Fitted:
    """Draws training rows, and finds a row of number n exp(-n) likely."""
    return Fitted(lambda count: train.sample(count, random_state=task.seed), lambda frame: -frame["n"].to_numpy())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    rows(40, ("a", "b")).to_parquet(tmp_path / TRAIN)
    rows(20, ("a", "b", "unseen", "b")).to_parquet(tmp_path / HELD_OUT)
    (tmp_path / TASK).write_text(json.dumps(asdict(Task(minutes=0.02, threads=1, seed=0))))
    monkeypatch.setattr(sys, "argv", ["program", str(tmp_path)])
    return tmp_path


def test_as_many_rows_as_are_held_out(folder: Path):
    serve(again, "numpy")
    drawn, train = (pd.read_parquet(folder / name) for name in (SAMPLED, TRAIN))
    assert len(drawn) == 20
    assert drawn.dtypes.equals(train.dtypes)
    assert json.loads((folder / REPORT).read_text())["versions"] == {"numpy": np.__version__}


def test_rows_with_unseen_categories_have_no_likelihood(folder: Path):
    serve(again)
    held_out = pd.read_parquet(folder / HELD_OUT)
    known = held_out["n"][held_out["word"] != "unseen"]
    likelihood = json.loads((folder / REPORT).read_text())["likelihood"]
    assert likelihood["rows"] == len(known) == 15
    assert likelihood["nll"] == pytest.approx(known.mean())


def test_a_table_needs_no_categories(folder: Path):
    for name in (TRAIN, HELD_OUT):
        pd.read_parquet(folder / name).drop(columns="word").to_parquet(folder / name)
    serve(again)
    assert json.loads((folder / REPORT).read_text())["likelihood"]["rows"] == 20


@pytest.mark.parametrize(("method", "library"), [("sdv", "sdv"), ("mostlyai", "mostlyai.engine")])
def test_a_peer_draws_rows_like_those_it_learned(method: str, library: str, folder: Path):
    pytest.importorskip(library)
    program = import_module(f"benchmarks.peers.methods.{PROGRAMS[method]}")
    serve(program.fit)
    drawn = pd.read_parquet(folder / SAMPLED)
    assert drawn["day"].between("2020-01-01", "2020-03-01").all()
    assert set(drawn["word"]) <= {"a", "b", "_RARE_"}
