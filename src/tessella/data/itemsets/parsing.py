"""From transactions to sets of four items: the published preprocessing, found by matching the published counts.

The paper's text has them the other way round: one subset for every row of Retail, and ten, five or one, by the row's
length, for Accidents. Retail's 30,351 sets of 765 items come out exactly with several subsets of a row; the published
number of sets of Accidents, just below that of its rows, can only come of one each.
"""

from collections.abc import Callable
from math import comb, log
from typing import Any, NamedTuple

import numpy as np

from tessella.data.forms import Extent

SIZE = 4  # items of a set
RARE = 300  # an item that occurs in fewer sets takes them along
FEW, MANY = 8, 16  # rows of more items give more subsets


class Transactions(NamedTuple):
    """Rows of item numbers, in the file's order: all items (M,), and how many each row has (n,)."""

    items: np.ndarray
    lengths: np.ndarray

    @property
    def rows(self) -> list[np.ndarray]:
        """Items of each row."""
        return np.split(self.items, np.cumsum(self.lengths)[:-1])


class Subsets(NamedTuple):
    """Sets of codes (n, 4), the item number of each code, what no model passes, and the generator that drew them."""

    codes: np.ndarray
    items: np.ndarray
    entropy_floor: float
    generator: np.random.RandomState

    @property
    def extent(self) -> Extent:
        """Sets, items of each, and different ones."""
        sets, size = self.codes.shape
        return Extent(sets, size, len(self.items))


def transactions_from_raw(data: bytes) -> Transactions:
    """Lines of item numbers that are separated by blanks.

    >>> transactions_from_raw(b"0 1 2 \\n5 \\n")
    Transactions(items=array([0, 1, 2, 5]), lengths=array([3, 1]))
    """
    rows = [line.split() for line in data.splitlines() if line.strip()]
    if not rows:
        raise ValueError("got no rows; expected lines of item numbers")
    return Transactions(
        np.array([int(item) for row in rows for item in row], dtype=np.int64), np.array(list(map(len, rows)))
    )


def transactions_from_compact(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Transactions:
    """Arrays `items` and `lengths`."""
    return Transactions(arrays["items"].astype(np.int64), arrays["lengths"].astype(np.int64))


def several_subsets(transactions: Transactions, seed: int) -> Subsets:
    """One subset of a row; four more if it has over 8 items, five more if over 16."""
    return _subsets(transactions, seed, lambda length: 1 + 4 * (length > FEW) + 5 * (length > MANY))


def one_subset(transactions: Transactions, seed: int) -> Subsets:
    """One subset of a row."""
    return _subsets(transactions, seed, lambda length: 1)


def _subsets(transactions: Transactions, seed: int, times: Callable[[int], int]) -> Subsets:
    """Sets of four: rows of exactly four items first, then subsets of longer rows as they are drawn.

    Each is drawn without replacement, as numpy's `choice` does it. Then sets with an item that occurs in fewer than 300
    sets are left out, in one pass. Given its row, a set that is left is any four of the row's m frequent items alike,
    so that the mean of -log P under any model is at least that of log C(m, 4).
    """
    generator, rows = np.random.RandomState(seed), transactions.rows
    exact, drawn = [], []
    for place, row in enumerate(rows):
        if len(row) == SIZE:
            exact.append((row, place))
        elif len(row) > SIZE:
            drawn += [(row[generator.permutation(len(row))[:SIZE]], place) for _ in range(times(len(row)))]
    if not exact and not drawn:
        raise ValueError(f"got {len(rows)} rows, none of {SIZE} items or more; expected some")
    sets, origin = (np.array(part) for part in zip(*exact, *drawn, strict=True))
    item, seen = np.unique(sets, return_counts=True)
    frequent = item[seen >= RARE]
    left = np.isin(sets, frequent).all(1)
    if not left.any():
        raise ValueError(f"got {len(sets)} sets, each with an item of fewer than {RARE} sets; expected frequent items")
    items, codes = np.unique(sets[left], return_inverse=True)
    ends = np.cumsum(np.isin(transactions.items, frequent))[np.cumsum(transactions.lengths) - 1]
    size, number = np.unique(np.diff(ends, prepend=0)[origin[left]], return_counts=True)
    floor = np.average([log(comb(m, SIZE)) for m in size.tolist()], weights=number)
    return Subsets(codes.reshape(-1, SIZE), items, float(floor), generator)
