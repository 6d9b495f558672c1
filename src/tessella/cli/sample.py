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
    from tessella.estimators.frames import to_arrow
    from tessella.estimators.saving import DESCRIPTION
    from tessella.progress import watching

    if (model / DESCRIPTION).exists():
        flow = TabularFlow.load(model)
        said = _parsed(flow, given or {})
        # How many rows a condition takes is known when they are there.
        with watching("rows drawn", None if said else rows):
            drawn = flow.sample(rows, said, random_state=seed)
        write_table(to_arrow(drawn), out)
    elif given:
        raise ValueError(
            f"given: got values for a model of `tessella train` in {model}; expected one of `tessella fit`"
        )
    else:
        with watching("rows drawn", rows):
            drawn = _rows_of_run(model, rows, seed)
        write_table(pa.table(drawn), out)


def _rows_of_run(folder: Path, rows: int, seed: int) -> dict[str, list[Any]]:
    import torch

    from tessella.runs import load_run

    torch.manual_seed(seed)
    run = load_run(folder)
    return run.encoding.by_name(*run.model.sample(rows))


def _parsed(flow: "TabularFlow", given: dict[str, str]) -> dict[str, Any]:
    return {name: flow.columns_[flow.encoding_.index(name)].parse(text) for name, text in given.items()}
