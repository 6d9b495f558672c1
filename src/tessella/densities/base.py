"""The contract of every density."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, constraints


class Density(nn.Module, ABC):
    """A normalised density over points of shape `event_shape`, possibly given a context."""

    event_shape: tuple[int, ...]

    @abstractmethod
    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """log p(x | context), (*batch, *event_shape) -> (*batch)."""

    @abstractmethod
    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        """Draws of shape (*shape, *event_shape), reparameterised where the density allows."""

    def sample_and_log_prob(self, shape: tuple[int, ...], context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Draws and their log-density; a flow does both in one pass."""
        x = self.sample(shape, context)
        return x, self.log_prob(x, context)

    def initialize(self, x: Tensor, context: Tensor | None = None) -> None:
        """Set data-dependent parameters from a batch, if there are any."""

    def as_distribution(self, context: Tensor | None = None) -> "DensityDistribution":
        """This density, with its context bound, as a `torch.distributions` distribution.

        zuko takes those; Pyro does with its mixin, as docs/tutorials/02-cell-map-in-your-flow.md shows.

        >>> from tessella.densities import Gaussian
        >>> normal = Gaussian((2,)).as_distribution()
        >>> normal.log_prob(normal.sample((3,))).shape
        torch.Size([3])
        """
        return DensityDistribution(self, context)


class DensityDistribution(Distribution):
    """A `Density` seen as a `torch.distributions.Distribution`, one point an event; a batch are independent draws."""

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}

    def __init__(self, density: Density, context: Tensor | None = None, batch_shape: tuple[int, ...] = ()):
        super().__init__(torch.Size(batch_shape), torch.Size(density.event_shape), validate_args=False)
        self.density, self.context = density, context

    @property
    def support(self) -> constraints.Constraint:
        return constraints.independent(constraints.real, len(self.density.event_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return self.density.log_prob(value, self.context)

    @torch.no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.density.sample((*sample_shape, *self.batch_shape), self.context)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "DensityDistribution":
        return type(self)(self.density, self.context, tuple(batch_shape))
