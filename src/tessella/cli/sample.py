"""`tessella sample`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

if TYPE_CHECKING:
    from tessella.estimators import TabularFlow


def sample(
    model: tyro.conf.Positional[Path],
    rows: int = 10,
    given: dict[str, str] | None = None,
    out: Path | None = None,
    seed: int = 0,
) -> None:
    """Draw new rows, with the columns' own names and categories, as CSV or Parquet.

    Args:
        model: folder that `tessella fit` or `tessella train` made.
        rows: how many.
        given: values that some columns shall have: --given sex F country Chad; an empty text stands for missing.
        out: file to write, .csv or .parquet; CSV to standard output without it.
        seed: of the draws.
    """
    import pyarrow as pa

    from tessella.cli.files import write_table
    from tessella.estimators import TabularFlow
    from tessella.estimators.arrow import to_arrow
    from tessella.estimators.saving import DESCRIPTION

    if (model / DESCRIPTION).exists():
        flow = TabularFlow.load(model)
        write_table(to_arrow(flow.sample(rows, _parsed(flow, given or {}), random_state=seed)), out)
    elif given:
        raise ValueError(
            f"given: got values for a model of `tessella train` in {model}; expected one of `tessella fit`"
        )
    else:
        write_table(pa.table(_rows_of_run(model, rows, seed)), out)


def _rows_of_run(folder: Path, rows: int, seed: int) -> dict[str, list[str]]:
    import torch

    from tessella.experiments import load_run

    torch.manual_seed(seed)
    run = load_run(folder)
    return run.table.schema.columns(run.model.sample(rows))


def _parsed(flow: "TabularFlow", given: dict[str, str]) -> dict[str, Any]:
    return {name: flow.columns_[flow.encoding_.index(name)].parse(text) for name, text in given.items()}
