"""`tessella score` and `tessella anomalies`."""

from contextlib import ExitStack
from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from tessella.cli.engines import EngineOptions
from tessella.cli.files import CsvOptions
from tessella.cli.unseen import Unseen

if TYPE_CHECKING:
    import numpy as np

    from tessella.cli.fitted import Piece
    from tessella.estimators import TabularFlow


def score(
    model: tyro.conf.Positional[Path],
    data: tyro.conf.Positional[Path],
    out: Path | None = None,
    unseen: Unseen = "error",
    json: bool = False,
    csv: Annotated[CsvOptions, tyro.conf.arg(name="")] = CsvOptions(),  # noqa: B008  # it is frozen
    engine: Annotated[EngineOptions, tyro.conf.arg(name="")] = EngineOptions(),  # noqa: B008  # it is frozen
) -> None:
    """Log-likelihood of every row of a file or folder, in nats; it is read in pieces and may be larger than memory.

    Args:
        model: folder that `tessella fit` made.
        data: a CSV or Parquet file with the same columns, or a folder of Parquet files.
        out: CSV file for the scores, one line a row; without it only the summary is printed.
        unseen: values that training did not see, and the model gives no probability: error stops there; missing takes
            them for missing, where training saw missing values; skip leaves their rows out, with an empty line in the
            file of scores.
        json: print the summary as JSON, and nothing else.
        csv: how a CSV file is written.
        engine: where the work is done.
    """
    import numpy as np

    from tessella.cli.files import replacing
    from tessella.cli.fitted import opened
    from tessella.progress import watching

    fitted = opened(model, data, csv, unseen, engine, visible=not json)
    total, rows = 0.0, 0
    with ExitStack() as stack:
        file = stack.enter_context(stack.enter_context(replacing(out)).open("w")) if out else None
        stack.enter_context(watching("rows scored", fitted.file.rows, visible=not json))
        if file:
            file.write("log_likelihood\n")
        for values in fitted.answers(_scores):
            total, rows = total + float(np.nansum(values)), rows + int((~np.isnan(values)).sum())
            if file:
                file.writelines("\n" if value != value else f"{value:.6f}\n" for value in values.tolist())
        if rows == 0:
            raise ValueError(f"{data}: got no rows{' that can be scored' * (unseen == 'skip')}; expected at least one")
    said = {"rows": rows, "mean_log_likelihood": total / rows, "scores": str(out) if out else None}
    if json:
        print(dumps({**said, **({"unseen": fitted.tally.said} if unseen != "error" else {})}, indent=1))
        return
    fitted.say_unseen()
    print(f"{rows:,} rows: mean log-likelihood {total / rows:.4f} nats" + (f"\nscores: {out}" if out else ""))


def _scores(flow: "TabularFlow", piece: "Piece") -> "np.ndarray":
    """Of each row; not a number where it is left out."""
    import numpy as np

    values = np.full(len(piece.kept), np.nan)
    values[piece.kept] = flow.score_samples(piece.table) if len(piece.table) else ()
    return values


def anomalies(
    model: tyro.conf.Positional[Path],
    data: tyro.conf.Positional[Path],
    top: int = 20,
    unseen: Unseen = "error",
    json: bool = False,
    csv: Annotated[CsvOptions, tyro.conf.arg(name="")] = CsvOptions(),  # noqa: B008  # it is frozen
    engine: Annotated[EngineOptions, tyro.conf.arg(name="")] = EngineOptions(),  # noqa: B008  # it is frozen
) -> None:
    """The oddest rows of a file, and the columns that make them odd.

    Args:
        model: folder that `tessella fit` made.
        data: a CSV or Parquet file with the same columns, or a folder of Parquet files.
        top: how many rows.
        unseen: values that training did not see, and the model gives no probability: error stops there; missing takes
            them for missing, where training saw missing values; skip leaves their rows out.
        json: print as JSON, and nothing else.
        csv: how a CSV file is written.
        engine: where the work is done.
    """
    from tessella.cli.fitted import opened
    from tessella.progress import watching

    if top < 1:
        raise ValueError(f"top: got {top}; expected at least 1")
    fitted = opened(model, data, csv, unseen, engine, visible=not json)
    found: list[dict[str, Any]] = []
    with watching("rows scored, and rows changed to see why", None, visible=not json):
        for odd in fitted.answers(partial(_oddest, top)):
            found = sorted(found + odd, key=lambda row: -row["surprise"])[:top]
    if not found:
        raise ValueError(f"{data}: got no rows{' that can be scored' * (unseen == 'skip')}; expected at least one")
    if json:
        print(dumps(found, indent=1))
        return
    fitted.say_unseen()
    print("\n".join(odd_rows(found)))


def _oddest(top: int, flow: "TabularFlow", piece: "Piece") -> list[dict[str, Any]]:
    """Of a piece, by their places in the file."""
    odd = flow.anomalies(piece.table, top=top).to_pylist() if len(piece.table) else []
    places = (piece.first + piece.kept.nonzero()[0]).tolist()
    return [{**row, "row": places[row["row"]]} for row in odd]


def odd_rows(found: list[dict[str, Any]]) -> list[str]:
    """Each row that `TabularFlow.anomalies` found, in a line."""
    lines = []
    for row in found:
        named = [(row[f"column_{i}"], row[f"contribution_{i}"]) for i in (1, 2, 3) if f"column_{i}" in row]
        why = ", ".join(f"{column} (+{nats:.1f})" for column, nats in named if nats > 0)
        odd = f"{row['score']:9.3f} nats, surprise {row['surprise']:6.1f}"
        lines.append(f"row {row['row']:>7,}  {odd}   {why or 'no single column'}")
    return lines
