"""Cells of a column as numbers, and the error that names one which cannot be."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Coded:
    """values[place[i]] is the cell of row i: the different values of a column, and which of them each row has."""

    values: list[Value]
    place: np.ndarray


Cells = np.ndarray | Coded
"""A column of a piece of a table, (rows,): numbers (NaN where missing) or datetime64 (NaT) as they are, else coded."""


def some(cells: Cells, rows: np.ndarray) -> Cells:
    """The cells of some rows; of few rows without the values of the others."""
    if not isinstance(cells, Coded):
        return np.take(cells, rows)
    if len(rows) >= len(cells.values):
        return Coded(cells.values, cells.place[rows])
    used, place = np.unique(cells.place[rows], return_inverse=True)
    return Coded([cells.values[one] for one in used.tolist()], place)


def plain(cells: Cells) -> list[Value]:
    """Cells as plain values, None where missing.

    >>> plain(np.array([1.5, np.nan])), plain(np.array(["2026-01-31"], dtype="datetime64[D]"))
    ([1.5, None], [datetime.date(2026, 1, 31)])
    >>> plain(Coded(["a", "b"], np.array([1, 1, 0])))
    ['b', 'b', 'a']
    """
    if isinstance(cells, Coded):
        return [cells.values[place] for place in cells.place.tolist()]
    found: list[Value] = cells.tolist()
    return found if cells.dtype.kind in "iu" else [None if value != value else value for value in found]


def different(cells: Cells) -> tuple[list[Value], np.ndarray]:
    """The different values among the cells, and how often each comes; None is one of them.

    >>> different(np.array([2, 1, 2]))
    ([1, 2], array([1, 2]))
    """
    if isinstance(cells, Coded):
        times = np.bincount(cells.place, minlength=len(cells.values))
        here = times.nonzero()[0]
        return [cells.values[place] for place in here.tolist()], times[here]
    values, times = np.unique(cells, return_counts=True)
    return plain(values), times


def coded(cells: Cells) -> Coded:
    """The same cells, coded."""
    if isinstance(cells, Coded):
        return cells
    values, place = np.unique(cells, return_inverse=True)
    return Coded(plain(values), place)


def as_numbers(values: Sequence[Value] | np.ndarray, dates: bool) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, or the milliseconds of dates, with NaN where missing, and which values are neither: (rows,) each.

    >>> as_numbers([1, None, "x"], dates=False)
    (array([ 1., nan, nan]), array([False, False,  True]))
    >>> as_numbers(np.array([1.0, np.nan]), dates=False)
    (array([ 1., nan]), array([False, False]))
    """
    if isinstance(values, np.ndarray):
        return _array_as_numbers(values, dates)
    kinds = (datetime.date,) if dates else (int, float)
    known = {kind: kind is type(None) or issubclass(kind, kinds) for kind in set(map(type, values))}
    alien = np.zeros(len(values), dtype=bool)
    if not all(known.values()):
        alien = np.array([not known[type(value)] for value in values], dtype=bool)
        values = [None if gone else value for value, gone in zip(values, alien.tolist(), strict=True)]
    numbers = (
        [milliseconds(value) if isinstance(value, datetime.date) else value for value in values] if dates else values
    )
    return np.array(numbers, dtype=np.float64), alien


def _array_as_numbers(values: np.ndarray, dates: bool) -> tuple[np.ndarray, np.ndarray]:
    if (values.dtype.kind == "M") != dates:
        return np.full(len(values), np.nan), np.ones(len(values), dtype=bool)
    if not dates:
        return values.astype(np.float64), np.zeros(len(values), dtype=bool)
    since = values.astype("datetime64[ms]").astype(np.int64) + milliseconds(datetime.date(1970, 1, 1))
    return np.where(np.isnat(values), np.nan, since), np.zeros(len(values), dtype=bool)
