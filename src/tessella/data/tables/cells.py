"""Cells of a column as numbers, and the error that names one which cannot be."""

import datetime
from collections.abc import Sequence

import numpy as np

from tessella.data.tables.dates import milliseconds
from tessella.data.tables.values import Value


class CellError(ValueError):
    """A value that a column cannot have.

    Args:
        column: its name.
        row: of the value, from 0.
        objection: what is wrong with it, and what was expected.
    """

    def __init__(self, column: str, row: int, objection: str):
        super().__init__(f"column {column!r}, row {row}: {objection}")
        self.column, self.row, self.objection = column, row, objection


def as_numbers(values: Sequence[Value], dates: bool) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, or the milliseconds of dates, with NaN where missing, and which values are neither: (rows,) each.

    >>> as_numbers([1, None, "x"], dates=False)
    (array([ 1., nan, nan]), array([False, False,  True]))
    """
    kinds = (datetime.date,) if dates else (int, float)
    known = {kind: kind is type(None) or issubclass(kind, kinds) for kind in set(map(type, values))}
    alien = np.zeros(len(values), dtype=bool)
    if not all(known.values()):
        alien = np.array([not known[type(value)] for value in values], dtype=bool)
        values = [None if gone else value for value, gone in zip(values, alien.tolist(), strict=True)]
    plain = (
        [milliseconds(value) if isinstance(value, datetime.date) else value for value in values] if dates else values
    )
    return np.array(plain, dtype=np.float64), alien
