"""Whether a frame is one that can be fitted, or one like that which was."""

from collections.abc import Sequence

import numpy as np

from tessella.data.tables.values import Value, nearest, shown
from tessella.estimators.frames.frame import Frame, Layout

MOST_COLUMNS = 2000


def check_width(columns: int) -> None:
    """There are not so many columns that a row would need more memory and time than anybody has.

    What a network makes of a row grows with the square of its columns: 1 GB for an update of 64 rows at this limit.
    """
    if columns > MOST_COLUMNS:
        raise ValueError(
            f"columns: got {columns:,}; expected at most {MOST_COLUMNS:,}, since time and memory grow with their "
            "square: choose the columns that matter, or model groups of them apart"
        )


def check_rows(frame: Frame, least: int) -> None:
    """There are columns, not too many of them, and at least so many rows."""
    check_width(len(frame.columns))
    if not frame.columns:
        raise ValueError(f"0 feature(s) (shape=({frame.rows}, 0)) while a minimum of 1 is required: no columns")
    if frame.rows < least:
        raise ValueError(
            f"Found {frame.rows} sample(s) (n_samples = {frame.rows}) while a minimum of {least} is required: "
            "too few rows"
        )


def matched(frame: Frame, layout: Layout) -> list[list[Value]]:
    """The columns in the order of the fitted frame: by name; by position where one of the two is an array."""
    found = matched_some(frame, layout)
    absent = [str(label) for label, column in zip(layout.labels, found, strict=True) if column is None]
    if absent:
        raise ValueError(f"columns: {shown(absent)} missing; {_expected(layout)}")
    return [column for column in found if column is not None]


def matched_some(frame: Frame, layout: Layout) -> list[list[Value] | None]:
    """The same, None for columns that the frame does not have; an array has all."""
    if frame.layout.is_array or layout.is_array:
        got, expected = len(frame.columns), len(layout.labels)
        if got != expected:
            raise ValueError(f"X has {got} features, but TabularFlow is expecting {expected} features as input")
        return list(frame.columns)
    fitted = [str(label) for label in layout.labels]
    extra = [name for name in frame.names if name not in fitted]
    if extra:
        raise ValueError(f"columns: {shown(extra)} not seen in fit{nearest(extra[0], fitted)}; {_expected(layout)}")
    columns = dict(zip(frame.names, frame.columns, strict=True))
    return [columns.get(name) for name in fitted]


def missing(values: Sequence[Value]) -> np.ndarray:
    """Which of the values are missing, (rows,)."""
    return np.array([value is None for value in values], dtype=bool)


def _expected(layout: Layout) -> str:
    names = [str(label) for label in layout.labels]
    return f"expected the {len(names)} columns of fit: {shown(names)}"
