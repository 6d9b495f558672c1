"""Baskets as people have them: lists of items, or a table with two columns, basket and item."""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from tessella.estimators import frames

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True)
class Baskets:
    """Different items of each basket, in the order in which baskets first came.

    Attributes:
        items: of each basket.
        names: what each basket is called: its position in a list, its id in a table.
        library: of the table; None for lists.
        labels: of the two columns of a table.
    """

    items: list[list[Hashable]]
    names: list[Any]
    library: str | None = None
    labels: tuple[str, str] | None = None

    def __len__(self) -> int:
        return len(self.items)


def read(X: Any) -> Baskets:
    """Lists of items; or a pandas, polars or pyarrow table, or a 2-D array, of the basket and the item of each row."""
    if isinstance(X, str | bytes):
        raise TypeError(f"X: got the text {X[:40]!r}; expected a list of baskets, each a list of items, or a table")
    listed = isinstance(X, np.ndarray) and X.ndim == 1
    found = _of_lists(X) if listed or (isinstance(X, Iterable) and not _is_table(X)) else _of_table(X)
    if not len(found):
        raise ValueError("X: got no baskets; expected at least one")
    return found


def one_basket(basket: Any, where: str = "basket") -> tuple[list[Hashable], int]:
    """The different items of a basket, and how many were repeated."""
    if isinstance(basket, str | bytes) or not isinstance(basket, Iterable):
        raise TypeError(f"{where}: got {basket!r:.40}; expected a list of items")
    items = [item.item() if isinstance(item, np.generic) else item for item in basket]
    for item in items:
        if not isinstance(item, Hashable):
            raise TypeError(f"{where}: got the item {item!r:.40}; expected something hashable, a text or an integer")
        if item is None or item != item:
            raise ValueError(f"{where}: got a missing item; expected texts or integers")
    different = list(dict.fromkeys(items))
    return different, len(items) - len(different)


def _is_table(X: Any) -> bool:
    return isinstance(X, np.ndarray) or hasattr(X, "columns") or hasattr(X, "column_names")


def _of_lists(X: Iterable[Any]) -> Baskets:
    found, repeated = [], 0
    for place, basket in enumerate(X):
        items, more = one_basket(basket, f"basket {place}")
        if not items:
            raise ValueError(f"basket {place}: got no items; expected at least one in each basket")
        found.append(items)
        repeated += more
    _say_repeated(repeated)
    return Baskets(found, list(range(len(found))))


def _of_table(X: Any) -> Baskets:
    frame = frames.read(X)
    if len(frame.columns) != 2:
        raise ValueError(f"X: got a table of {len(frame.columns)} columns; expected two, basket and item")
    ids, items = frame.columns
    for name, values in zip(frame.names, frame.columns, strict=True):
        if None in values:
            raise ValueError(f"column {name!r}, row {values.index(None)}: got a missing value; expected none")
    by_id: dict[Hashable, dict[Hashable, None]] = {}
    for basket, item in zip(ids, items, strict=True):
        by_id.setdefault(basket, {})[item] = None
    found = [list(basket) for basket in by_id.values()]
    _say_repeated(len(items) - sum(map(len, found)))
    return Baskets(found, list(by_id), frames.library_of(X), (frame.names[0], frame.names[1]))


def _say_repeated(repeated: int) -> None:
    """Once for all of them."""
    if repeated:
        warnings.warn(f"{repeated:,} items were in their basket already; each counts once", stacklevel=4)


def flattened(baskets: Sequence[Sequence[Item]]) -> list[Item]:
    """All items, basket by basket."""
    return list(chain.from_iterable(baskets))
