"""What models are told about sets of items."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from tessella import checks
from tessella.data.sources import PaddedSets


@dataclass(frozen=True)
class SetShape:
    """Sets of n different items among K, least <= n <= most.

    Attributes:
        items: K.
        least, most: n.

    >>> SetShape.of(PaddedSets([torch.tensor([3, 1, 4]), torch.tensor([5])]), items=7)
    SetShape(items=7, least=1, most=3)
    """

    items: int
    least: int
    most: int

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most <= self.items:
            raise ValueError(
                f"least, most, items: got {self.least}, {self.most} and {self.items}; "
                "expected 1 <= least <= most <= items"
            )

    @classmethod
    def of(cls, sets: PaddedSets, items: int) -> Self:
        """That of these sets among so many items."""
        sizes = sets.offsets.diff()
        return cls(items, int(sizes.min()), int(sizes.max()))

    @property
    def one_size(self) -> bool:
        """Whether all sets have equally many items, so that none is ever padded."""
        return self.least == self.most

    def check(self, items: Tensor, mask: Tensor) -> None:
        """Batches (items, mask), (B, n) each, of such sets; values are looked at where `checks` allows it."""
        if mask.dtype != torch.bool or mask.shape != items.shape:
            raise ValueError(
                f"mask: got {mask.dtype} of shape {tuple(mask.shape)}; expected torch.bool of shape "
                f"{tuple(items.shape)}, whether each item exists"
            )
        if items.dim() != 2 or len(items) == 0:
            raise ValueError(f"items: got shape {tuple(items.shape)}; expected (B, n), at least one set")
        checks.indices("items", items, tuple(items.shape), torch.tensor(self.items))
        if checks.readable(items):
            self._check_values(items, mask)

    def _check_values(self, items: Tensor, mask: Tensor) -> None:
        sizes = mask.sum(1)
        if bool(((sizes < self.least) | (sizes > self.most)).any()):
            raise ValueError(
                f"mask: got sets of {int(sizes.min())} to {int(sizes.max())} items; "
                f"expected {self.least} to {self.most}"
            )
        absent = torch.arange(items.shape[1], device=items.device) - items.shape[1]  # different, and no item
        ordered = torch.where(mask, items, absent).sort(1).values
        twice = (ordered.diff(dim=1) == 0).any(1)
        if bool(twice.any()):
            place = int(twice.nonzero()[0])
            raise ValueError(
                f"items: set {place} is {items[place, mask[place]].tolist()}; expected different items, each once"
            )
