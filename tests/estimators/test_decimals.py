"""Decimals are numbers, and come back as decimals."""

from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tessella.estimators import frames

VALUES = [Decimal("1.25"), Decimal("-0.50"), None]
FRAMES = {
    "pandas": lambda: pd.DataFrame({"a": pd.Series(VALUES, dtype=pd.ArrowDtype(pa.decimal128(9, 2)))}),
    "polars": lambda: pl.DataFrame({"a": pl.Series(VALUES, dtype=pl.Decimal(9, 2))}),
    "pyarrow": lambda: pa.table({"a": pa.array(VALUES, pa.decimal128(9, 2))}),
}


@pytest.mark.parametrize("library", FRAMES)
def test_they_come_back_as_they_were(library):
    frame = FRAMES[library]()
    found = frames.read(frame)
    assert found.columns == ([1.25, -0.5, None],)
    again = frames.write(frames.Layout.from_json(found.layout.to_json()), found.columns)
    assert frames.read(again) == found
