"""A competitor in a process of its own, with the threads that it is given."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peers.methods.exchange import HELD_OUT, REPORT, SAMPLED, TASK, TRAIN, Task
from benchmarks.peers.tables import Split

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    "tessella": "flow",
    "mostlyai": "argn",
    "mostlyai-one-order": "argn_one_order",
    "mostlyai-discrete": "argn_discrete",
    "sdv": "copula",
}


def run(method: str, rows: Split, task: Task, python: str, folder: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Rows that the method drew, and what it says of itself."""
    pq.write_table(rows.train, folder / TRAIN)
    pq.write_table(rows.held_out, folder / HELD_OUT)
    (folder / TASK).write_text(json.dumps(asdict(task)))
    program = [python if method != "tessella" else sys.executable, "-m", f"benchmarks.peers.methods.{PROGRAMS[method]}"]
    threads = {name: str(task.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    subprocess.run([*program, str(folder)], cwd=ROOT, env=os.environ | threads, check=True)
    return pq.read_table(folder / SAMPLED), json.loads((folder / REPORT).read_text())
