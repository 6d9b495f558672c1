"""Items by number."""

import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Literal, Self

import torch
from torch import Tensor

from tessella.data import PaddedSets
from tessella.estimators.baskets.reading import Baskets, flattened

Unseen = Literal["error", "skip"]


class Items:
    """Item k is `names[k]`, the most frequent first.

    Args:
        names: of all items, different ones.
    """

    def __init__(self, names: Sequence[Hashable]):
        self.names = tuple(names)

    @classmethod
    def of(cls, baskets: Baskets) -> Self:
        """Those of some baskets; equally frequent ones as they first came."""
        return cls([name for name, _ in Counter(flattened(baskets.items)).most_common()])

    @cached_property
    def codes(self) -> dict[Hashable, int]:
        """The number of each item."""
        return {name: code for code, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def encode(self, baskets: Baskets, unseen: Unseen = "error") -> tuple[PaddedSets | None, Tensor]:
        """Baskets by number, and which are left; no sets where none is.

        Args:
            baskets: of items that are known, but for
            unseen: items that are not: an error, or left out of their baskets, which is said.
        """
        if unseen == "error":
            coded = [self.codes_of(basket, f"basket {name!r}") for basket, name in _named(baskets)]
        else:
            coded = [[self.codes[item] for item in basket if item in self.codes] for basket in baskets.items]
            gone = [len(basket) - len(left) for basket, left in zip(baskets.items, coded, strict=True)]
            if sum(gone):
                number = sum(1 for one in gone if one)
                warnings.warn(
                    f"{sum(gone):,} items of {number:,} baskets were not seen in training: left out", stacklevel=3
                )
        left = torch.tensor([bool(basket) for basket in coded])
        if not left.any():
            return None, left
        sizes = torch.tensor([0, *(len(basket) for basket in coded if basket)])
        return PaddedSets(torch.tensor(flattened(coded)), sizes.cumsum(0)), left

    def codes_of(self, basket: Sequence[Hashable], where: str) -> list[int]:
        """Numbers of items that are known."""
        try:
            return [self.codes[item] for item in basket]
        except KeyError as error:
            raise ValueError(
                f"{where}: got the item {error.args[0]!r}, which training did not see; expected one of the "
                f"{len(self):,} items of the training baskets (unseen='skip' leaves others out)"
            ) from None


def _named(baskets: Baskets) -> list[tuple[list[Hashable], object]]:
    return list(zip(baskets.items, baskets.names, strict=True))
