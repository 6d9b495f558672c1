"""Columns that say one thing together, as one column: the same rows, in fewer variables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from tessella.data.tables.columns import Column
from tessella.data.tables.parsing import Coded, words

Spelling = tuple[int, ...]  # a code for each of some columns


@dataclass(frozen=True)
class Joint:
    """Columns j, ..., j + n - 1 <-> one column, whose category k is the k-th way in which their codes can be.

    What they cannot be has no category, so what is possible must be known from what the columns mean, not from rows.
    A joined row is the row written otherwise: its probability is the same number.

    Attributes:
        name: of the one column.
        first: j.
        spellings: codes of the columns, for each category, all different.
        labels: names of the categories; without them, the values of the columns, one after another.
    """

    name: str
    first: int
    spellings: tuple[Spelling, ...]
    labels: tuple[str, ...] = ()

    @property
    def columns(self) -> range:
        """Which columns it stands for."""
        return range(self.first, self.first + len(self.spellings[0]))

    def codes(self, codes: np.ndarray) -> np.ndarray:
        """Category of every row of codes (rows, N) of all columns, (rows,)."""
        own, known = codes[:, self.columns].astype(np.int64), np.array(self.spellings)
        radix = np.concatenate([np.cumprod(1 + known.max(0)[:0:-1])[::-1], [1]])
        numbers = known @ radix
        order = numbers.argsort()
        place: np.ndarray = order[np.searchsorted(numbers[order], own @ radix).clip(max=len(order) - 1)]
        if len(wrong := np.flatnonzero((known[place] != own).any(1))):
            raise ValueError(
                f"row {wrong[0]}: got codes {own[wrong[0]].tolist()!s:.80} for {self.name!r}; expected one of its "
                f"{len(known)} spellings, e.g. {list(self.spellings[0])!s:.80}"
            )
        return place

    def column(self, columns: Sequence[Column]) -> Column:
        """What it means, from what all columns mean."""
        own = [columns[j] for j in self.columns]
        said = (
            " ".join(str(column.categories[code]) for column, code in zip(own, spelling, strict=True))
            for spelling in self.spellings
        )
        return words(self.name, self.labels or said)


def joined(coded: Coded, joints: Iterable[Joint]) -> Coded:
    """A table whose columns are joined, each joint in the place of its first column.

    >>> bits = Coded(tuple(words(name, "01") for name in "abc"), np.array([[0, 1, 0], [1, 0, 1]]))
    >>> table = joined(bits, [Joint("a or b", 0, one_hot(2), ("a", "b"))])
    >>> [column.name for column in table.columns], table.codes.tolist()
    (['a or b', 'c'], [[1, 0], [0, 1]])
    """
    by_first = {joint.first: joint for joint in joints}
    inside = {j for joint in by_first.values() for j in joint.columns}
    columns, codes = [], []
    for j, column in enumerate(coded.columns):
        if joint := by_first.get(j):
            columns.append(joint.column(coded.columns))
            codes.append(joint.codes(coded.codes))
        elif j not in inside:
            columns.append(column)
            codes.append(coded.codes[:, j])
    return Coded(tuple(columns), np.stack(codes, axis=1))


def one_hot(columns: int) -> tuple[Spelling, ...]:
    """One of so many columns is 1, the others are 0.

    >>> one_hot(3)
    ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    """
    return tuple(tuple(int(i == k) for i in range(columns)) for k in range(columns))


def pairs(first: int, second: int) -> tuple[Spelling, ...]:
    """Any code of one column and any of the next.

    >>> pairs(2, 2)
    ((0, 0), (0, 1), (1, 0), (1, 1))
    """
    return tuple(product(range(first), range(second)))


def stacks(height: int, pieces: Sequence[int], empty: int = 0) -> tuple[Spelling, ...]:
    """Pieces from the bottom up, nothing above the last.

    >>> stacks(2, pieces=(1, 2))
    ((0, 0), (1, 0), (2, 0), (1, 1), (1, 2), (2, 1), (2, 2))
    """
    return tuple(
        (*stack, *[empty] * (height - number))
        for number in range(height + 1)
        for stack in product(pieces, repeat=number)
    )
