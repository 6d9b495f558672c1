"""The contract of every density."""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn


class Density(nn.Module, ABC):
    """A normalised density over points of shape `event_shape`, possibly given a context."""

    event_shape: tuple[int, ...]

    @abstractmethod
    def log_prob(self, x: Tensor, context: Any = None) -> Tensor:
        """log p(x | context), (*batch, *event_shape) -> (*batch)."""

    @abstractmethod
    def sample(self, shape: tuple[int, ...], context: Any = None) -> Tensor:
        """Draws of shape (*shape, *event_shape), reparameterised where the density allows."""

    def sample_and_log_prob(self, shape: tuple[int, ...], context: Any = None) -> tuple[Tensor, Tensor]:
        """Draws and their log-density; a flow does both in one pass."""
        x = self.sample(shape, context)
        return x, self.log_prob(x, context)

    def initialize(self, x: Tensor, context: Any = None) -> None:
        """Set data-dependent parameters from a batch, if there are any."""
