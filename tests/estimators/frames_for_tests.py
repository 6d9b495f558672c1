"""A small mixed table in every library, and an estimator that learns it in a second."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from tessella.estimators import TabularFlow

LIBRARIES = ["pandas", "polars", "pyarrow"]


def small_flow(**options: Any) -> TabularFlow:
    chosen = {"width": 8, "max_steps": 30, "samples": 8, "device": "cpu", "random_state": 0}
    return TabularFlow(**{**chosen, "progress": False, **options})


def cell_flow(**options: Any) -> TabularFlow:
    """The same through cells."""
    return small_flow(**{"density": "coupling", "dim": 2, "blocks": 2, **options})


def mixed_columns(rows: int = 240, seed: int = 0) -> dict[str, list[Any]]:
    """Plain columns of every type; height, pay, visits and note have a reason to be what they are."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    height = np.where(sex == "F", 165.0, 178.0) + 7 * rng.standard_normal(rows)
    pay = np.exp(rng.standard_normal(rows) + (sex == "M")) * 1000
    day = datetime.date(2020, 1, 1)
    return {
        "sex": sex.tolist(),
        "height": height.tolist(),
        "pay": [None if gone else value for gone, value in zip(rng.random(rows) < 0.2, pay.tolist(), strict=True)],
        "children": rng.poisson(1, rows).tolist(),
        "visits": rng.poisson(100, rows).tolist(),
        "day": [day + datetime.timedelta(days=int(i)) for i in rng.integers(0, 400, rows)],
        "member": (rng.random(rows) < 0.3).tolist(),
        "note": [[None, "late", "lost"][i] for i in rng.integers(0, 3, rows)],
        "country": ["Chad"] * rows,
    }


def pandas_frame(columns: dict[str, list[Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    frame["sex"] = pd.Categorical(frame["sex"], categories=["F", "M", "X"])
    frame["day"] = pd.to_datetime(frame["day"])
    return frame


def polars_frame(columns: dict[str, list[Any]]) -> pl.DataFrame:
    return pl.DataFrame(columns).with_columns(pl.col("sex").cast(pl.Enum(["F", "M", "X"])))


def pyarrow_frame(columns: dict[str, list[Any]]) -> pa.Table:
    table = pa.table(columns)
    return table.set_column(0, "sex", table["sex"].dictionary_encode())


FRAMES = {"pandas": pandas_frame, "polars": polars_frame, "pyarrow": pyarrow_frame}


def to_pandas(frame: Any) -> pd.DataFrame:
    """Plain columns, to look at."""
    return (
        frame
        if isinstance(frame, pd.DataFrame)
        else pd.DataFrame(frame.to_pydict() if isinstance(frame, pa.Table) else frame.to_dict(as_series=False))
    )


def dtypes(frame: Any) -> list[Any]:
    return frame.schema.types if isinstance(frame, pa.Table) else list(frame.dtypes)


KINDS = {
    "sex": "categorical",
    "height": "continuous",
    "pay": "continuous",
    "children": "ordinal",
    "visits": "count",
    "day": "date",
    "member": "boolean",
    "note": "categorical",
    "country": "categorical",
}
