"""The contract of every bijection, and its door to `torch.distributions`."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.distributions import constraints
from torch.distributions.transforms import Transform


class Bijection(nn.Module, ABC):
    """One map, both ways: y = f(x), x = f^-1(y), each with the log-absolute-determinant of the call just made.

    `event_dim` trailing dimensions belong to one point; the others are batch. `ladj` has the batch shape. `context`
    is what the map depends on (a cell index, a conditioning vector); None for maps that depend on nothing.
    """

    event_dim: int = 1

    @abstractmethod
    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """y = f(x) and log |det df/dx|."""

    @abstractmethod
    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x = f^-1(y) and log |det df^-1/dy|."""

    @torch.no_grad()
    def initialize(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Set data-dependent parameters from a batch, if there are any, and return the batch's image."""
        return self.forward_and_ladj(x, context)[0]

    def as_transform(self, context: Tensor | None = None) -> "BijectionTransform":
        """This bijection, with its context bound, as a `torch.distributions` transform (Pyro and zuko take those).

        >>> from tessella import CellBijection, Voronoi
        >>> into = CellBijection(Voronoi(torch.eye(2))).as_transform(torch.tensor(0))
        >>> base = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> in_cell = torch.distributions.TransformedDistribution(base, [into])
        >>> in_cell.log_prob(in_cell.sample()).isfinite()
        tensor(True)
        """
        return BijectionTransform(self, context)


class BijectionTransform(Transform):
    """A `Bijection` seen as a `torch.distributions.transforms.Transform`."""

    bijective = True

    def __init__(self, bijection: Bijection, context: Tensor | None = None):
        super().__init__()
        self.bijection, self.context = bijection, context

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return constraints.independent(constraints.real, self.bijection.event_dim)

    codomain = domain

    def call_and_ladj(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Value and log-determinant in one evaluation (zuko's convention)."""
        return self.bijection.forward_and_ladj(x, self.context)

    def _call(self, x: Tensor) -> Tensor:
        return self.call_and_ladj(x)[0]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.bijection.inverse_and_ladj(y, self.context)[0]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.call_and_ladj(x)[1]

    def with_cache(self, cache_size: int = 1) -> "BijectionTransform":
        return self


def sum_trailing(ladj: Tensor, dims: int) -> Tensor:
    """Sum a log-determinant over its last `dims` dimensions."""
    return ladj if dims == 0 else ladj.sum(dim=tuple(range(-dims, 0)))


def zero_ladj(x: Tensor, event_dim: int) -> Tensor:
    """The log-determinant of the identity, with the batch shape of x."""
    return torch.zeros(x.shape[: x.dim() - event_dim], dtype=x.dtype, device=x.device)
