"""`tessella impute` and `tessella predict`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from tessella.cli.files import CsvOptions, Formulas
from tessella.cli.unseen import Unseen

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def impute(
    model: tyro.conf.Positional[Path],
    data: tyro.conf.Positional[Path],
    out: Path | None = None,
    most_likely: bool = False,
    unseen: Unseen = "error",
    formulas: Formulas = "auto",
    seed: int = 0,
    csv: Annotated[CsvOptions, tyro.conf.arg(name="")] = CsvOptions(),  # noqa: B008  # it is frozen
) -> None:
    """Fill what is missing in a file, given what is there: drawn from its exact conditional, or the most likely.

    Args:
        model: folder that `tessella fit` made.
        data: a CSV or Parquet file with the same columns, or some of them.
        out: file to write, .csv or .parquet; CSV to standard output without it.
        most_likely: the likeliest category and the median of a number, instead of draws.
        unseen: values that training did not see: error stops there; missing fills them, too; skip leaves their rows as
            they are.
        formulas: texts that a spreadsheet would take for formulas get a quotation mark: auto, in columns where training
            saw none; escape, everywhere; keep, nowhere.
        seed: of the draws.
        csv: how a CSV file is written.
    """
    import pyarrow as pa

    from tessella.cli.files import escaped, with_formulas, write_table
    from tessella.cli.fitted import opened
    from tessella.estimators.frames import to_arrow
    from tessella.progress import watching

    fitted = opened(model, data, csv, unseen, gaps=True)
    flow, (table, kept) = fitted.flow, fitted.whole()
    with watching("rows filled", len(table)), fitted.checked.naming_rows(0):
        filled = to_arrow(flow.impute(table, most_likely=most_likely, random_state=seed))
    if not kept.all():
        rest = fitted.file.read(fitted.schema).filter(pa.array(~kept))
        filled = _merged(filled, rest, kept)
    fitted.say_unseen()
    write_table(escaped(filled, formulas, with_formulas(flow.columns_)), out)


def _merged(filled: "pa.Table", rest: "pa.Table", kept: "np.ndarray") -> "pa.Table":
    """Rows in their places: those that are kept from the first table, the others from the second."""
    import numpy as np
    import pyarrow as pa

    both = pa.concat_tables([filled, rest], promote_options="permissive")
    order = np.concatenate([np.flatnonzero(kept), np.flatnonzero(~kept)])
    return both.take(np.argsort(order))


def predict(
    model: tyro.conf.Positional[Path],
    data: tyro.conf.Positional[Path],
    column: str | None = None,
    out: Path | None = None,
    unseen: Unseen = "error",
    csv: Annotated[CsvOptions, tyro.conf.arg(name="")] = CsvOptions(),  # noqa: B008  # it is frozen
) -> None:
    """What a column will be given the others: probabilities of its categories, or the median of a number.

    Args:
        model: folder that `tessella fit` made.
        data: a CSV or Parquet file with the same columns, or some of them.
        column: which; the last one of the fitted table without it. What the file says about it makes no difference.
        out: file to write, .csv or .parquet; CSV to standard output without it.
        unseen: values that training did not see: error stops there; missing takes them for unknown; skip leaves empty
            lines for their rows.
        csv: how a CSV file is written.
    """
    from tessella.cli.files import write_table
    from tessella.cli.fitted import opened
    from tessella.progress import watching

    fitted = opened(model, data, csv, unseen, gaps=True)
    flow = fitted.flow
    spec = flow.columns_[-1 if column is None else flow.encoding_.index(column)]
    fitted.checked.ignored = spec.name
    table, kept = fitted.whole()
    with watching("rows asked", len(table)), fitted.checked.naming_rows(0):
        if spec.number:
            found: dict[str, list[Any]] = {spec.name: flow.predict(table, spec.name).tolist()}
        else:
            found = flow.predict_proba(table, spec.name).to_pydict()
    fitted.say_unseen()
    write_table(_with_gaps(found, kept), out)


def _with_gaps(found: dict[str, list[Any]], kept: "np.ndarray") -> "pa.Table":
    """Columns as a table, with empty rows where none is kept."""
    import pyarrow as pa

    places = pa.array(
        [place if there else None for place, there in zip((kept.cumsum() - 1).tolist(), kept, strict=True)]
    )
    return pa.table(found).take(places.cast(pa.int64()))
