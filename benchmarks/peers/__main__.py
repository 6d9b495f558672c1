"""`TabularFlow` against mostlyai-engine and SDV on one table; writes results/peers-DATA.json.

    python -m benchmarks.peers --data covertype --minutes 5
    python -m benchmarks.peers --data flights --methods mostlyai sdv --python ~/peers/bin/python

Every method sees the same training rows and draws as many rows as are held out, anew for each of several seeds: runs
that end by the clock differ from each other by more than the errors of the metrics. The peers are the extra `peers`;
where they live in an environment of their own, `--python` is its interpreter. `--methods` runs some now and others
later: what was measured before with the same rows, minutes and threads stays in the record.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from benchmarks.peers.methods.exchange import Task
from benchmarks.peers.metrics import copies, dependence, two_sample, utility
from benchmarks.peers.running import PROGRAMS, run
from benchmarks.peers.tables import TABLES, Split, split
from benchmarks.peers.views import TableView
from tessella import records


def measure(rows: Split, drawn: pa.Table, target: str, seed: int) -> dict[str, Any]:
    """All metrics of drawn rows."""
    view = TableView(rows.train)
    return {
        "two_sample": asdict(two_sample(view, rows.held_out, drawn, seed)),
        "utility": asdict(utility(view, target, drawn, rows.held_out, seed)),
        "dependence": dependence(view, rows.held_out, drawn),
        "copies": copies(rows.train, drawn),
    }


def compare(method: str, rows: Split, target: str, task: Task, python: str) -> dict[str, Any]:
    """What a method drew and how long it took; or other real rows."""
    if method == "real":
        return {"seed": task.seed, **measure(rows, rows.real, target, task.seed)}
    with TemporaryDirectory() as folder:
        drawn, report = run(method, rows, task, python, Path(folder))
    return {"seed": task.seed, **measure(rows, drawn, target, task.seed), **report}


def earlier(path: Path, setup: dict[str, Any]) -> dict[str, Any]:
    """What other methods were measured at with the same rows, minutes and threads."""
    found = json.loads(path.read_text()) if path.exists() else {}
    methods: dict[str, Any] = found["methods"] if found.get("setup") == setup else {}
    return methods


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=TABLES, default="covertype")
    parser.add_argument("--methods", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--rows", type=int, default=None, help="training rows at most, drawn at random")
    parser.add_argument("--scored", type=int, default=50_000, help="rows at most that are held out, and drawn")
    parser.add_argument("--minutes", type=float, default=5.0, help="of training")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=3, help="of each method, by seed, on the same rows")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has the peers")
    parser.add_argument("--results", type=Path, default=Path("results"))
    return parser.parse_args()


def main() -> None:
    options = arguments()
    data = TABLES[options.data]
    rows = split(data.read(), options.rows, options.scored, options.seed)
    sizes = {"train": len(rows.train), "held_out": len(rows.held_out), "columns": rows.train.num_columns}
    limits = {"minutes": options.minutes, "threads": options.threads, "split_seed": options.seed}
    setup = {"target": data.target, **sizes, **limits}
    path = options.results / f"peers-{options.data}.json"
    methods = earlier(path, setup)
    for method in ("real", *options.methods):
        runs = []
        for seed in range(options.seed, options.seed + (1 if method == "real" else options.runs)):
            task = Task(options.minutes, options.threads, seed)
            runs.append(compare(method, rows, data.target, task, options.python))
            print(method, {key: runs[-1][key] for key in ("two_sample", "utility", "dependence", "copies")}, flush=True)
        methods[method] = {"runs": runs, **records.provenance(options.seed)}
        record = {"data": options.data, "about": data.about, "setup": setup, "methods": methods}
        records.write(path, record | records.provenance(options.seed))


if __name__ == "__main__":
    main()
