"""What is learned about a column that nobody sees whole: from pieces, in one pass and bounded memory."""

import datetime
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from tessella.data.tables.cells import Cells, Coded, as_numbers, different, plain
from tessella.data.tables.columns import (
    FEW,
    MOST_CATEGORIES,
    MOST_DECLARED,
    NUMBERS,
    Column,
    all_missing,
    learn,
    too_many,
)
from tessella.data.tables.dates import UNITS
from tessella.data.tables.grids import DIGITS, on_grid
from tessella.data.tables.values import Value


class Sketch:
    """The rows of each category, and of numbers witnesses: values without which the column would seem another.

    `learn` decides from a sample of the values. What a sample may miss is kept: the least and the greatest number, one
    off each grid, one of each type, and every category. So types, categories and ranges are those that `learn` finds
    in all values at once; shares in it, such as those of atoms, are the sample's.

    Args:
        name: of the column.
        kind: its type, where that is declared.

    >>> sketch = Sketch("x")
    >>> sketch.add(np.array([1.0, 2.0, 3.5]))
    >>> sketch.add(np.array([np.nan, 400.25]))
    >>> column = sketch.column([1.0, 2.0])
    >>> column.kind, column.low, column.high, column.frequencies
    ('continuous', 1.0, 400.25, (1, 4))
    """

    def __init__(self, name: str, kind: str | None = None):
        self.name, self.kind = name, kind
        self.rows = self.missing = 0
        self.crowded = False
        """Whether there are more different values than are counted."""
        self.counts: Counter[Value] = Counter()
        self._witnesses: dict[Hashable, Value] = {}

    @property
    def texts(self) -> bool:
        """Whether it is a column of text."""
        return ("type", str) in self._witnesses

    @property
    def most(self) -> int:
        """Different values that are counted: as many as there may be categories."""
        if self.kind is not None and self.kind not in NUMBERS:
            return MOST_DECLARED
        return MOST_CATEGORIES if self.texts else FEW

    def add(self, cells: Cells) -> None:
        """The next piece."""
        self.rows += len(cells.place if isinstance(cells, Coded) else cells)
        if isinstance(cells, Coded):
            gone = [place for place, value in enumerate(cells.values) if value is None]
            self.missing += int(np.isin(cells.place, gone).sum())
            numbers: list[Value] = [value for value in cells.values if value is not None and not isinstance(value, str)]
            self._witness_types(cells.values)
            self._witness_numbers(numbers, dates=any(isinstance(value, datetime.date) for value in numbers))
        else:
            dates = cells.dtype.kind == "M"
            there = cells if cells.dtype.kind in "iu" else cells[~(np.isnat(cells) if dates else np.isnan(cells))]
            self.missing += len(cells) - len(there)
            self._witness_types(plain(there[:1]))
            self._witness_numbers(there, dates)
        if not self.crowded:
            self._count(cells)

    def _count(self, cells: Cells) -> None:
        for value, times in zip(*different(cells), strict=True):
            if value is None:
                continue
            if value not in self.counts and len(self.counts) > self.most:
                self.crowded = True
                return
            self.counts[value] += int(times)

    def _witness_types(self, values: list[Value]) -> None:
        known = {type(value) for value in self._witnesses.values()}
        for kind in {*map(type, values)} - {type(None)} - known:
            self._witnesses["type", kind] = next(value for value in values if type(value) is kind)

    def _witness_numbers(self, values: list[Value] | np.ndarray, dates: bool) -> None:
        """Extremes, and numbers that are no multiples, of values none of which is missing."""
        if len(values) == 0:
            return
        numbers = as_numbers(values, dates)[0]
        found = {"least": int(numbers.argmin()), "greatest": int(numbers.argmax())}
        for step in self._steps(values, dates):
            off = numbers % step != 0 if dates else ~on_grid(numbers, step) if step else numbers != np.round(numbers)
            if ("off", step) not in self._witnesses and off.any():
                self._witnesses["off", step] = _value(values, int(off.argmax()))
        for why, place in found.items():
            before = as_numbers([self._witnesses.get(why)], dates)[0][0]
            if np.isnan(before) or (numbers[place] - before) * (1 if why == "greatest" else -1) > 0:
                self._witnesses[why] = _value(values, place)

    def _steps(self, values: list[Value] | np.ndarray, dates: bool) -> list[float]:
        """Those of which not all numbers so far are known to be multiples, or not; 0 for whole numbers exactly."""
        steps = [*map(float, UNITS.values())] if dates else [0.0, *(10.0**-digits for digits in range(DIGITS + 1))]
        whole = isinstance(values, np.ndarray) and values.dtype.kind in "iu"
        return [] if whole else [step for step in steps if ("off", step) not in self._witnesses]

    def column(self, sample: list[Value], order: list[Value] | None = None) -> Column:
        """The column of all values, of which some are given: a random sample."""
        if self.missing == self.rows:
            raise all_missing(self.name, self.rows)
        if self.crowded and self.most > FEW:
            raise too_many(self.name, f"more than {self.most:,}", self.most)
        unsampled = {*self._witnesses.values(), *self.counts} - {*sample}
        values: list[Value] = [*sample, *unsampled, *[None] * bool(self.missing)]
        learned = learn(self.name, values, self.kind, order)
        if learned.number:
            present = self.rows - self.missing
            share = present / max(1, sum(value is not None for value in sample))
            atoms = [round(share * times) for times in learned.frequencies[2:]]
            return replace(learned, frequencies=(self.missing, max(0, present - sum(atoms)), *atoms))
        times = [self.missing if value is None else self.counts[value] for value in learned.categories]
        return replace(learned, frequencies=tuple(times))


def _value(values: list[Value] | np.ndarray, place: int) -> Value:
    return values[place] if isinstance(values, list) else plain(values[place : place + 1])[0]
