"""`tessella impute` and `tessella predict`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from tessella.cli.files import CsvOptions, Formulas
from tessella.cli.unseen import Unseen

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa

    from tessella.cli.fitted import Piece
    from tessella.data import Column
    from tessella.estimators import TabularFlow


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
        data: a CSV or Parquet file with the same columns, or some of them; or a folder of Parquet files. It is read in
            pieces and may be larger than memory.
        out: file to write, .csv or .parquet; CSV to standard output without it.
        most_likely: the likeliest category and the median of a number, instead of draws.
        unseen: values that training did not see: error stops there; missing fills them, too; skip leaves their rows as
            they are.
        formulas: texts that a spreadsheet would take for formulas get a quotation mark: auto, in columns where training
            saw none; escape, everywhere; keep, nowhere.
        seed: of the draws.
        csv: how a CSV file is written.
    """
    from tessella.cli.files import escaped, with_formulas, writing
    from tessella.cli.fitted import opened, seed_of
    from tessella.estimators.frames import to_arrow
    from tessella.estimators.frames import write as write_frame
    from tessella.progress import watching

    fitted = opened(model, data, csv, unseen, gaps=True)
    flow, trusted = fitted.flow, with_formulas(fitted.flow.columns_)
    with writing(out) as write, watching("rows filled", fitted.file.rows):
        for number, piece in enumerate(_some(fitted.pieces(), data)):
            filled = write_frame(flow.layout_, [[] for _ in flow.columns_])
            if len(piece.table):
                with fitted.checked.naming_rows(piece.first):
                    filled = flow.impute(piece.table, most_likely=most_likely, random_state=seed_of(number, seed))
            filled = to_arrow(filled)
            if unseen == "skip":
                filled = _merged(filled, piece.raw, piece.kept)
            write(escaped(filled, formulas, trusted))
    fitted.say_unseen()


def _some(pieces: "Iterator[Piece]", data: Path) -> "Iterator[Piece]":
    """The pieces, of which there is one at least."""
    rows = 0
    for piece in pieces:
        rows += len(piece.raw)
        yield piece
    if not rows:
        raise ValueError(f"{data}: got no rows; expected at least one")


def _merged(filled: "pa.Table", raw: "pa.Table", kept: "np.ndarray") -> "pa.Table":
    """Rows in their places: those that are kept as they were filled, the others as they are."""
    import numpy as np
    import pyarrow as pa

    both = pa.concat_tables([filled, raw.filter(pa.array(~kept))], promote_options="permissive")
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
        data: a CSV or Parquet file with the same columns, or some of them; or a folder of Parquet files. It is read in
            pieces and may be larger than memory.
        column: which; the last one of the fitted table without it. What the file says about it makes no difference.
        out: file to write, .csv or .parquet; CSV to standard output without it.
        unseen: values that training did not see: error stops there; missing takes them for unknown; skip leaves empty
            lines for their rows.
        csv: how a CSV file is written.
    """
    import numpy as np

    from tessella.cli.files import writing
    from tessella.cli.fitted import opened
    from tessella.progress import watching

    fitted = opened(model, data, csv, unseen, gaps=True)
    spec = fitted.flow.columns_[-1 if column is None else fitted.flow.encoding_.index(column)]
    fitted.checked.ignored = spec.name
    with writing(out) as write, watching("rows asked", fitted.file.rows):
        answers: dict[str, list[Any]] = {spec.name: []}
        waiting = np.zeros(0, dtype=bool)  # rows that are not written yet: only an answer says of which type they are
        for piece in _some(fitted.pieces(), data):
            waiting = np.concatenate([waiting, piece.kept])
            if len(piece.table):
                with fitted.checked.naming_rows(piece.first):
                    answers = _answers(fitted.flow, piece.table, spec)
                write(_with_gaps(answers, waiting))
                waiting = waiting[:0]
        if len(waiting):
            write(_with_gaps({name: [] for name in answers}, waiting))
    fitted.say_unseen()


def _answers(flow: "TabularFlow", table: "pa.Table", spec: "Column") -> dict[str, list[Any]]:
    """The median of a number, or the probability of each category."""
    if spec.number:
        return {spec.name: flow.predict(table, spec.name).tolist()}
    found: dict[str, list[Any]] = flow.predict_proba(table, spec.name).to_pydict()
    return found


def _with_gaps(found: dict[str, list[Any]], kept: "np.ndarray") -> "pa.Table":
    """Columns as a table, with empty rows where none is kept."""
    import pyarrow as pa

    places = pa.array(
        [place if there else None for place, there in zip((kept.cumsum() - 1).tolist(), kept, strict=True)]
    )
    return pa.table(found).take(places.cast(pa.int64()))
