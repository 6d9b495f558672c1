"""Values that a column is limited to, where a question does not say which it is."""

from dataclasses import dataclass
from math import inf
from typing import Self

import torch
from torch import Tensor

from tessella.data.tables.columns import Column


@dataclass(frozen=True)
class Limit:
    """Some of the categories of a column; or the numbers from `low` to `high`, and some of what is said instead of one.

    Args:
        allowed: which categories may come, (1, K); of a number which of its states besides the number, missing and the
            atoms that the encoding knows, (1, S) or a row each, (B, S).
        low, high: in steps, both included, (1) or (B); nothing for categories.
    """

    allowed: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def categories(cls, allowed: Tensor) -> Self:
        """Those that are marked, (K)."""
        nothing = torch.zeros(0, dtype=torch.float64)
        return cls(allowed[None], nothing, nothing)

    @classmethod
    def between(cls, column: Column, low: Tensor, high: Tensor) -> Self:
        """The numbers of a column from low to high, (B) each; none that is missing."""
        atoms = torch.tensor(column.atoms, dtype=torch.float64)
        inside = (atoms >= low[:, None]) & (atoms <= high[:, None])
        return cls(torch.cat([inside.new_zeros(len(low), int(column.missing)), inside], 1), low, high)

    @classmethod
    def there(cls, column: Column) -> Self:
        """Every value of a column but missing."""
        if column.number:
            return cls.between(column, torch.tensor([-inf]).double(), torch.tensor([inf]).double())
        return cls.categories(torch.tensor([category is not None for category in column.categories]))

    def to(self, device: torch.device) -> Self:
        """On a device."""
        return type(self)(self.allowed.to(device), self.low.to(device), self.high.to(device))
