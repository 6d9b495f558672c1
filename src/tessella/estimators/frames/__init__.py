"""Frames of pandas, polars and pyarrow, and arrays: read, checked, and written as they came."""

from tessella.estimators.frames.arrow import to_arrow
from tessella.estimators.frames.checking import check_rows, check_width, matched, matched_some, missing
from tessella.estimators.frames.dtypes import check_layout
from tessella.estimators.frames.frame import Frame, Layout, plain_value
from tessella.estimators.frames.reading import library_of, read
from tessella.estimators.frames.texts import text
from tessella.estimators.frames.writing import write, write_new

__all__ = [
    "Frame",
    "Layout",
    "check_layout",
    "check_rows",
    "check_width",
    "library_of",
    "matched",
    "matched_some",
    "missing",
    "plain_value",
    "read",
    "text",
    "to_arrow",
    "write",
    "write_new",
]
