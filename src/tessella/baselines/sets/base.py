"""The contract of every baseline of sets."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from tessella.baselines.base import check_at_least_one
from tessella.contracts import Batch
from tessella.data.itemsets.shape import SetShape
from tessella.densities.sets.sizes import SetSizes, mask_of


class SetBaseline(nn.Module, ABC):
    """P(set) > 0 for every set of different items, sum P = 1: a likelihood of sets in which no order counts.

    `Trainable`. A model is restored by its constructor's arguments and its `state_dict`.

    Args:
        shape: K items, sets of least to most of them.
    """

    sets_at_once = 2**12
    log_share: Tensor

    def __init__(self, shape: SetShape):
        super().__init__()
        self.shape = shape
        self.sizes = SetSizes(shape)
        share = torch.full((shape.items,), 1 / shape.items, dtype=torch.float64)
        self.register_buffer("log_share", share.log())  # of the items among all, (K)

    @property
    def exact(self) -> bool:
        """Whether `log_prob` is the value itself."""
        return True

    @torch.no_grad()
    def start(self, items: Tensor, mask: Tensor) -> None:
        """Begin with sizes and items as frequent as in training sets, (B, n) each."""
        self.shape.check(items, mask)
        self.sizes.start(mask)
        seen = torch.bincount(items[mask], minlength=self.shape.items).double() + 0.5
        self.log_share.copy_((seen / seen.sum()).log())

    def log_prob(self, items: Tensor, mask: Tensor, samples: int | None = None) -> Tensor:
        """log P(set) in nats, exact: (B, n), (B, n) -> (B). It needs no `samples`; bounds do."""
        self.shape.check(items, mask)
        parts = zip(items.split(self.sets_at_once), mask.split(self.sets_at_once), strict=True)
        return torch.cat([self._log_prob(*part) for part in parts])

    def nll(self, items: Tensor, mask: Tensor) -> Tensor:
        """-log P of every set: (B)."""
        return -self.log_prob(items, mask)

    def loss(self, items: Tensor, mask: Tensor) -> Tensor:
        """Mean of -log P over a batch, the training objective."""
        return self.nll(items, mask).mean()

    def initialize(self, items: Tensor, mask: Tensor) -> None:
        """Nothing: `start` takes all training sets."""

    @torch.no_grad()
    def sample(self, sets: int) -> Batch:
        """New sets: (items, mask), (sets, most) each."""
        check_at_least_one(sets=sets)
        sizes = self.sizes.sample(sets)
        return self._sample(sizes), mask_of(sizes, self.shape.most)

    @abstractmethod
    def _log_prob(self, items: Tensor, mask: Tensor) -> Tensor:
        """`log_prob` of sets that were checked."""

    @abstractmethod
    def _sample(self, sizes: Tensor) -> Tensor:
        """Items of sets of these sizes (B), (B, most), 0 where there is none."""
