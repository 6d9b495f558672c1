"""`tessella fit`, `score`, `anomalies`: a table of your own, CSV or Parquet."""

from contextlib import ExitStack
from json import dumps
from pathlib import Path
from typing import Literal

import tyro

ColumnType = Literal["categorical", "ordinal", "boolean", "count", "continuous", "date"]


def fit(
    data: tyro.conf.Positional[Path],
    out: Path = Path("model"),
    minutes: float = 5.0,
    types: dict[str, ColumnType] | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    seed: int = 0,
    json: bool = False,
) -> None:
    """Learn the joint likelihood of a table's rows: tessella fit data.csv --out model.

    Column types are inferred; missing values are modelled. Ctrl-C keeps the best model so far. Then: tessella score,
    tessella anomalies, tessella sample.

    Args:
        data: a CSV or Parquet file.
        out: folder for the model.
        minutes: how long to train at most.
        types: types of some columns, where the guess is wrong: --types age continuous zip categorical.
        device: where to train.
        seed: of split and training.
        json: print the result as JSON.
    """
    from tessella.cli.files import read_table
    from tessella.estimators import TabularFlow

    table = read_table(data)
    flow = TabularFlow(types, time_budget=60 * minutes, device=device, random_state=seed, progress=not json).fit(table)
    flow.save(out)
    kinds = {column.name: column.kind for column in flow.columns_}
    if json:
        said = {"rows": len(table), "columns": kinds, "validation_nll": flow.best_validation_}
        print(dumps({**said, "stopped": flow.stopped_, "model": str(out)}, indent=1))
        return
    print(f"{len(table):,} rows; columns: " + ", ".join(f"{name} ({kind})" for name, kind in kinds.items()))
    print(f"validation: at most {flow.best_validation_:.4f} nats per row; stopped by {flow.stopped_}")
    print(f"model: {out}\nnext: tessella anomalies {out} {data}, or tessella sample {out} --rows 5")


def score(
    model: tyro.conf.Positional[Path], data: tyro.conf.Positional[Path], out: Path | None = None, json: bool = False
) -> None:
    """Log-likelihood of every row of a file, in nats; the file is read in pieces and may be larger than memory.

    Args:
        model: folder that `tessella fit` made.
        data: a CSV or Parquet file with the same columns.
        out: CSV file for the scores, one line a row; without it only the summary is printed.
        json: print the summary as JSON.
    """
    from tessella.cli.files import read_pieces
    from tessella.estimators import TabularFlow

    flow, total, rows = TabularFlow.load(model), 0.0, 0
    with ExitStack() as stack:
        file = stack.enter_context(out.open("w")) if out else None
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
        json: print as JSON.
    """
    from tessella.cli.files import read_table
    from tessella.estimators import TabularFlow

    found = TabularFlow.load(model).anomalies(read_table(data), top=top).to_pylist()
    if json:
        print(dumps(found, indent=1))
        return
    for row in found:
        named = [(row[f"column_{i}"], row[f"contribution_{i}"]) for i in (1, 2, 3) if f"column_{i}" in row]
        why = ", ".join(f"{column} (+{nats:.1f})" for column, nats in named if column is not None)
        print(f"row {row['row']:>7,}  {row['score']:9.3f} nats   {why}")
