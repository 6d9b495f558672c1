"""All sets of a tiny universe."""

from itertools import combinations

import torch

from tessella.contracts import Batch
from tessella.data import PaddedSets, SetShape


def universe(shape: SetShape) -> Batch:
    """Every set there is, (items, mask)."""
    sizes = range(shape.least, shape.most + 1)
    sets = [torch.tensor(chosen) for n in sizes for chosen in combinations(range(shape.items), n)]
    return PaddedSets(sets, size=shape.most).batch(torch.arange(len(sets)))


def key(items: torch.Tensor, mask: torch.Tensor) -> tuple[int, ...]:
    """A set as what it is."""
    return tuple(sorted(items[mask].tolist()))
