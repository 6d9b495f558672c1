"""`tessella impute` and `tessella predict`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from tessella.cli.engines import EngineOptions
from tessella.cli.files import CsvOptions, Formulas
from tessella.cli.unseen import Unseen

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa

    from tessella.cli.fitted import Fitted, Piece, Question
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
    engine: Annotated[EngineOptions, tyro.conf.arg(name="")] = EngineOptions(),  # noqa: B008  # it is frozen
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
        engine: where the work is done.
    """
    from tessella.cli.files import escaped, with_formulas, writing
    from tessella.cli.fitted import opened
    from tessella.progress import watching

    fitted = opened(model, data, csv, unseen, engine, gaps=True)
    trusted = with_formulas(fitted.flow.columns_)
    with writing(out) as write, watching("rows filled", fitted.file.rows):
        for filled in _some(fitted, partial(_filled, most_likely, unseen == "skip", seed)):
            write(escaped(filled, formulas, trusted))
    fitted.say_unseen()


def _some(fitted: "Fitted", question: "Question") -> "Iterator[Any]":
    """The answers about a file that has a row at least."""
    yield from fitted.answers(question)
    if not fitted.tally.rows:
        raise ValueError(f"{fitted.file.path}: got no rows; expected at least one")


def _filled(most_likely: bool, others: bool, seed: int, flow: "TabularFlow", piece: "Piece") -> "pa.Table":
    """Its rows without gaps; with the others, which are not filled, in their places if asked for."""
    from tessella.cli.fitted import seed_of
    from tessella.estimators.frames import to_arrow, write

    filled = write(flow.layout_, [[] for _ in flow.columns_])
    if len(piece.table):
        filled = flow.impute(piece.table, most_likely=most_likely, random_state=seed_of(piece.first, seed))
    return _merged(to_arrow(filled), piece.raw, piece.kept) if others else to_arrow(filled)


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
    engine: Annotated[EngineOptions, tyro.conf.arg(name="")] = EngineOptions(),  # noqa: B008  # it is frozen
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
        engine: where the work is done.
    """
    import numpy as np

    from tessella.cli.files import writing
    from tessella.cli.fitted import opened
    from tessella.progress import watching

    fitted = opened(model, data, csv, unseen, engine, gaps=True)
    spec = fitted.flow.columns_[-1 if column is None else fitted.flow.encoding_.index(column)]
    fitted.checked.ignored = spec.name
    with writing(out) as write, watching("rows asked", fitted.file.rows):
        answers: dict[str, list[Any]] = {spec.name: []}
        waiting = np.zeros(0, dtype=bool)  # rows that are not written yet: only an answer says of which type they are
        for found, kept in _some(fitted, partial(_predicted, spec)):
            waiting = np.concatenate([waiting, kept])
            if found:
                answers = found
                write(_with_gaps(answers, waiting))
                waiting = waiting[:0]
        if len(waiting):
            write(_with_gaps({name: [] for name in answers}, waiting))
    fitted.say_unseen()


def _predicted(spec: "Column", flow: "TabularFlow", piece: "Piece") -> "tuple[dict[str, list[Any]], np.ndarray]":
    """The median of a number, or the probability of each category, if there is a row left; and which rows are."""
    found: dict[str, list[Any]] = {}
    if len(piece.table) and spec.number:
        found = {spec.name: flow.predict(piece.table, spec.name).tolist()}
    elif len(piece.table):
        found = flow.predict_proba(piece.table, spec.name).to_pydict()
    return found, piece.kept


def _with_gaps(found: dict[str, list[Any]], kept: "np.ndarray") -> "pa.Table":
    """Columns as a table, with empty rows where none is kept."""
    import pyarrow as pa

    places = pa.array(
        [place if there else None for place, there in zip((kept.cumsum() - 1).tolist(), kept, strict=True)]
    )
    return pa.table(found).take(places.cast(pa.int64()))
