"""`TabularFlow` as it comes, five minutes on a CPU, against what one would use instead: results/defaults-DATA.json.

python -m benchmarks.defaults --data mushroom
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from tessella import TabularFlow, records
from tessella.data import load_table
from tessella.data.locate import find
from tessella.data.reading import read_compact
from tessella.estimators.overview import gather

TABLES = ("mushroom", "nursery", "connect4")
SAMPLES = 64  # for all tables, with groups of columns or without
MIXED, MIXED_ROWS = "covertype", 20_000
"""Ten integer columns, two of categories and the label, of rows drawn from the raw table."""


def rows_of(name: str) -> pa.Table:
    """A table of the package, whole; or the mixed one."""
    if name == MIXED:
        return _covertype()
    table = load_table(name)
    parts = zip(*(part.tensors for part in table.parts.values()), strict=True)
    return pa.table(table.encoding.by_name(*map(torch.cat, parts)))


def _covertype() -> pa.Table:
    found = find(("covtype.npz.xz",), archive="")
    if found is None:
        raise FileNotFoundError("covtype.npz.xz: not found; expected it in the folder TESSELLA_DATA")
    _, arrays = read_compact(found[0])
    rows = np.random.RandomState(0).permutation(len(arrays["C"]))[:MIXED_ROWS]
    names = [f"number {j}" for j in range(arrays["C"].shape[1])]
    numbers = {name: arrays["C"][rows, j].astype(int) for j, name in enumerate(names)}
    texts = {
        name: arrays[key][rows].astype(str)
        for name, key in {"wilderness": "wilderness", "soil": "soil", "cover": "y"}.items()
    }
    return pa.table({**numbers, **texts})


NAMES = {
    "mushroom": "Mushroom, 21 columns of categories",
    "nursery": "Nursery, 8 columns of categories",
    "connect4": "Connect4, 42 columns of categories",
    MIXED: "Covertype, 10 counts and 3 columns of categories",
}


def line(record: dict[str, Any], digits: int) -> str:
    """A record as a line of a table: the model, then what one would use instead; the best in bold."""
    lowest = min(one["nll"] for one in record["likelihoods"])
    cells = []
    for one in record["likelihoods"]:
        value = f"{'' if one['exact'] else '≤ '}{one['nll']:.{digits}f}"
        cells.append(f"**{value}**" if one["nll"] == lowest else value)
    return f"| {NAMES[record['data']]} | {' | '.join(cells)} | {record['learning']['before']:.{digits}f} |"


def main() -> None:
    """Fit, compare on rows that nothing was learned from, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=[*TABLES, MIXED], default="mushroom")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    table = rows_of(options.data)
    flow = TabularFlow(
        time_budget=options.seconds, test_fraction=0.1, samples=SAMPLES, device="cpu", random_state=options.seed
    )
    overview = gather(flow.fit(table), table)
    record = {
        "data": options.data,
        "rows": overview.rows,
        "columns": len(overview.columns),
        "budget": options.seconds,
        "seconds": overview.seconds,
        "steps": overview.steps,
        "stopped": overview.stopped,
        "model": overview.model,
        "exact": overview.exact,
        "learning": overview.learning,
        "threads": flow.threads_,
        "test_rows": overview.scored_rows,
        "samples": 0 if overview.exact else overview.samples,
        "likelihoods": overview.likelihoods,
        **records.provenance(options.seed),
    }
    records.write(options.results / f"defaults-{options.data}.json", record)
    for one in overview.likelihoods:
        print(f"{one['name']:<20} {one['nll']:8.3f} +- {one['error']:.3f}")


if __name__ == "__main__":
    main()
