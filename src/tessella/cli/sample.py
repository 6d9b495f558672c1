"""`tessella sample`."""

from pathlib import Path

import tyro


def sample(model: tyro.conf.Positional[Path], rows: int = 10, out: Path | None = None, seed: int = 0) -> None:
    """Draw new rows, with the columns' own names and categories, as CSV or Parquet.

    Args:
        model: folder that `tessella fit` or `tessella train` made.
        rows: how many.
        out: file to write, .csv or .parquet; CSV to standard output without it.
        seed: of the draws.
    """
    import pyarrow as pa

    from tessella.cli.files import write_table
    from tessella.estimators import TabularFlow
    from tessella.estimators.arrow import to_arrow
    from tessella.estimators.saving import DESCRIPTION

    if (model / DESCRIPTION).exists():
        write_table(to_arrow(TabularFlow.load(model).sample(rows, random_state=seed)), out)
    else:
        write_table(pa.table(_rows_of_run(model, rows, seed)), out)


def _rows_of_run(folder: Path, rows: int, seed: int) -> dict[str, list[str]]:
    import torch

    from tessella.experiments import load_run

    torch.manual_seed(seed)
    run = load_run(folder)
    columns = zip(*run.table.schema.decode(run.model.sample(rows)), strict=True)
    return {variable.name: list(column) for variable, column in zip(run.table.schema.variables, columns, strict=True)}
