"""Rows in which a column has shares of one's own, everything else as it is given that."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tessella.data import Encoding

Balance = str | Mapping[str, Mapping[Any, float]]


def strata(encoding: Encoding, balance: Balance, given: Mapping[str, Any], n: int) -> list[tuple[dict[str, Any], int]]:
    """What is given in each part of n rows, and how many rows it has, in shares that are rounded to whole rows.

    Args:
        encoding: of the table.
        balance: a column, for equal shares of its categories but missing; or {column: {value: share}}, a value anything
            that can be given.
        given: everywhere.
        n: rows in all.
    """
    name, shares = _shares(encoding, balance)
    if name in given:
        raise ValueError(f"balance: got {name!r}, which is given, too; expected one or the other")
    counts = _rounded([float(share) for share in shares.values()], n)
    return [({**given, name: value}, count) for value, count in zip(shares, counts, strict=True) if count]


def balanced(parts: list[Tensor]) -> Tensor:
    """The rows of all strata, in random order."""
    rows = torch.cat(parts)
    return rows[torch.randperm(len(rows))]


def _shares(encoding: Encoding, balance: Balance) -> tuple[str, Mapping[Any, float]]:
    if isinstance(balance, str):
        column = encoding.columns[encoding.index(balance)]
        if column.number:
            raise ValueError(
                f"balance: column {balance!r} is {column.kind}; expected categories, or shares of intervals, "
                f"{{{balance!r}: {{(low, high): share}}}}"
            )
        return balance, {category: 1.0 for category in column.categories if category is not None}
    if len(balance) != 1:
        raise ValueError(f"balance: got {len(balance)} columns; expected one")
    ((name, shares),) = balance.items()
    if not shares or min(shares.values()) < 0 or not sum(shares.values()) > 0:
        raise ValueError(
            f"balance: got the shares {dict(shares)}; expected at least one that is positive, none negative"
        )
    encoding.index(name)
    return name, shares


def _rounded(shares: list[float], n: int) -> list[int]:
    """n in these proportions, by largest remainders.

    >>> _rounded([1.0, 1.0, 2.0], 5)
    [1, 1, 3]
    """
    exact = torch.tensor(shares, dtype=torch.float64) / sum(shares) * n
    whole = exact.floor()
    more = (exact - whole).argsort(descending=True, stable=True)[: n - int(whole.sum())]
    whole[more] += 1
    return [int(count) for count in whole]
