"""`tessella sample`."""

import csv
import sys
from pathlib import Path

import tyro


def sample(run: tyro.conf.Positional[Path], rows: int = 10, out: Path | None = None, seed: int = 0) -> None:
    """Draw new rows from a run's model, as CSV with the columns' own names and categories.

    Args:
        run: run folder, as `tessella train` makes it.
        rows: how many.
        out: file to write; standard output without it.
        seed: of the draws.
    """
    import torch

    from tessella.experiments import load_run

    torch.manual_seed(seed)
    loaded = load_run(run)
    table = [[variable.name for variable in loaded.table.schema.variables]]
    table += [list(row) for row in loaded.table.schema.decode(loaded.model.sample(rows))]
    if out is None:
        csv.writer(sys.stdout).writerows(table)
        return
    with out.open("w", newline="") as file:
        csv.writer(file).writerows(table)
    print(f"{rows:,} rows: {out}")
