"""Base densities of sets: exchangeable, and what they know of the items before anything is learned."""

from abc import abstractmethod
from math import log, pi

import torch
from torch import Tensor

from tessella.densities.base import Density


class SetBase(Density):
    """A density of points (n, D) that no permutation of the items changes; context as in `bijections.Items`."""

    @abstractmethod
    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """log p(x), (*batch, n, D) -> (*batch)."""

    def start(self, log_share: Tensor, sets: int, centre: Tensor, scale: Tensor) -> None:
        """Begin with training sets: items of these frequencies (K), so many sets, points around these, (K, D) each."""

    def penalty(self) -> Tensor:
        """-log prior of the parameters, in nats per training set: a part of the training objective, of no bound."""
        return torch.zeros(())


class GaussianItems(SetBase):
    """log p(x) = sum over items of log N(x_j; 0, I)."""

    like: Tensor

    def __init__(self, most: int, dim: int):
        super().__init__()
        self.event_shape = most, dim
        self.register_buffer("like", torch.zeros(()), persistent=False)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        by_item = (-0.5 * x.square() - 0.5 * log(2 * pi)).sum(-1)
        return (by_item if context is None else torch.where(context[..., 0] > 0, by_item, 0)).sum(-1)

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        return torch.randn(*shape, *self.event_shape, dtype=self.like.dtype, device=self.like.device)

    def penalty(self) -> Tensor:
        return self.like
