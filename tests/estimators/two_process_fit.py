"""A program that `torchrun` starts, or nobody: `python two_process_fit.py FOLDER OUT` fits a table in several ways.

What each process has at the end is in OUT/RANK.json, and what it printed OUT/RANK.txt.
"""

import contextlib
import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.estimators.frames_for_tests import small_flow

from tessella.cli import main
from tessella.estimators import TabularFlow, streaming
from tessella.folders import tensor_bytes
from tessella.training.processes import own_rank

SETTINGS: dict[str, Any] = {
    "max_steps": 40,
    "batch_size": 64,
    "learning_rate": 0.01,
    "density": "autoregressive",
    "threads": 1,
}


def told(flow: TabularFlow) -> dict[str, Any]:
    """What must be the same in all processes, and about the same in one."""
    weights = sha256(tensor_bytes(flow.model_.state_dict())).hexdigest()
    return {"before": flow.initial_validation_, "after": flow.best_validation_, "weights": weights}


def run(folder: Path, out: Path) -> None:
    whole = small_flow(**SETTINGS).fit(pq.read_table(folder))
    reads = set[int]()
    table = streaming.ParquetTable(folder)
    survey = streaming.survey(table, {}, 0, 0.1, 0.0)
    read = table.read
    table.read = lambda piece: (reads.add(piece), read(piece))[1]
    streamed = small_flow(**SETTINGS, memory=0.0).fit(survey)
    found = {"whole": told(whole), "streamed": told(streamed), "reads": sorted(reads)}
    (out / f"{own_rank()}.json").write_text(json.dumps(found))
    sys.argv = ["tessella", "fit", str(folder), "--out", str(out / "model"), "--minutes", "0.01", "--device", "cpu"]
    with (out / f"{own_rank()}.txt").open("w") as file, contextlib.redirect_stdout(file):
        main()


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]))
