"""`tessella score` and `tessella anomalies`."""

from contextlib import ExitStack
from json import dumps
from pathlib import Path
from typing import Any

import tyro


def score(
    model: tyro.conf.Positional[Path], data: tyro.conf.Positional[Path], out: Path | None = None, json: bool = False
) -> None:
    """Log-likelihood of every row of a file, in nats; the file is read in pieces and may be larger than memory.

    Args:
        model: folder that `tessella fit` made.
        data: a CSV or Parquet file with the same columns.
        out: CSV file for the scores, one line a row; without it only the summary is printed.
        json: print the summary as JSON, and nothing else.
    """
    from tessella.cli.files import count_rows, read_pieces
    from tessella.estimators import TabularFlow
    from tessella.progress import watching

    flow, total, rows = TabularFlow.load(model), 0.0, 0
    with ExitStack() as stack:
        file = stack.enter_context(out.open("w")) if out else None
        stack.enter_context(watching("rows scored", count_rows(data), visible=not json))
        if file:
            file.write("log_likelihood\n")
        for piece in read_pieces(data):
            values = flow.score_samples(piece)
            total, rows = total + float(values.sum()), rows + len(values)
            if file:
                file.writelines(f"{value:.6f}\n" for value in values)
    if rows == 0:
        raise ValueError(f"{data}: got no rows; expected at least one")
    if json:
        print(dumps({"rows": rows, "mean_log_likelihood": total / rows, "scores": str(out) if out else None}, indent=1))
        return
    print(f"{rows:,} rows: mean log-likelihood {total / rows:.4f} nats" + (f"\nscores: {out}" if out else ""))


def anomalies(
    model: tyro.conf.Positional[Path], data: tyro.conf.Positional[Path], top: int = 20, json: bool = False
) -> None:
    """The oddest rows of a file, and the columns that make them odd.

    Args:
        model: folder that `tessella fit` made.
        data: a CSV or Parquet file with the same columns.
        top: how many rows.
        json: print as JSON, and nothing else.
    """
    from tessella.cli.files import read_table
    from tessella.estimators import TabularFlow
    from tessella.progress import watching

    with watching("rows scored, and rows changed to see why", None, visible=not json):
        found = TabularFlow.load(model).anomalies(read_table(data), top=top).to_pylist()
    if json:
        print(dumps(found, indent=1))
        return
    print("\n".join(odd_rows(found)))


def odd_rows(found: list[dict[str, Any]]) -> list[str]:
    """Each row that `TabularFlow.anomalies` found, in a line."""
    lines = []
    for row in found:
        named = [(row[f"column_{i}"], row[f"contribution_{i}"]) for i in (1, 2, 3) if f"column_{i}" in row]
        why = ", ".join(f"{column} (+{nats:.1f})" for column, nats in named if nats > 0)
        lines.append(f"row {row['row']:>7,}  {row['score']:9.3f} nats   {why or 'no single column'}")
    return lines
