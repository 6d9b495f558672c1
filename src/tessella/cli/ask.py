"""`tessella impute` and `tessella predict`."""

from pathlib import Path

import tyro


def impute(
    model: tyro.conf.Positional[Path],
    data: tyro.conf.Positional[Path],
    out: Path | None = None,
    most_likely: bool = False,
    seed: int = 0,
) -> None:
    """Fill what is missing in a file, given what is there: drawn from its exact conditional, or the most likely.

    Args:
        model: folder that `tessella fit` made.
        data: a CSV or Parquet file with the same columns, or some of them.
        out: file to write, .csv or .parquet; CSV to standard output without it.
        most_likely: the likeliest category and the median of a number, instead of draws.
        seed: of the draws.
    """
    from tessella.cli.files import read_table, write_table
    from tessella.estimators import TabularFlow
    from tessella.estimators.frames import to_arrow
    from tessella.progress import watching

    table = read_table(data)
    with watching("rows filled", len(table)):
        filled = TabularFlow.load(model).impute(table, most_likely=most_likely, random_state=seed)
    write_table(to_arrow(filled), out)


def predict(
    model: tyro.conf.Positional[Path],
    data: tyro.conf.Positional[Path],
    column: str | None = None,
    out: Path | None = None,
) -> None:
    """What a column will be given the others: probabilities of its categories, or the median of a number.

    Args:
        model: folder that `tessella fit` made.
        data: a CSV or Parquet file with the same columns, or some of them.
        column: which; the last one of the fitted table without it. What the file says about it makes no difference.
        out: file to write, .csv or .parquet; CSV to standard output without it.
    """
    import pyarrow as pa

    from tessella.cli.files import read_table, write_table
    from tessella.estimators import TabularFlow
    from tessella.progress import watching

    flow, table = TabularFlow.load(model), read_table(data)
    spec = flow.columns_[-1 if column is None else flow.encoding_.index(column)]
    with watching("rows asked", len(table)):
        if spec.number:
            found = pa.table({spec.name: flow.predict(table, spec.name).tolist()})
        else:
            found = flow.predict_proba(table, spec.name)
    write_table(found, out)
