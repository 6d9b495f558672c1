"""Base densities: independent coordinates, nothing to learn."""

from collections.abc import Callable
from math import lgamma, log, pi
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tessella.bijections.base import sum_trailing
from tessella.densities.base import Density


class Gaussian(Density):
    """log p(u) = sum -u^2 / 2 - log(2 pi) / 2.

    >>> Gaussian((2,)).log_prob(torch.zeros(3, 2))[0]
    tensor(-1.8379)
    """

    like: Tensor

    def __init__(self, event_shape: tuple[int, ...]):
        super().__init__()
        self.event_shape = event_shape
        self.register_buffer("like", torch.zeros(()), persistent=False)  # carries device and dtype

    def log_prob(self, x: Tensor, context: Any = None) -> Tensor:
        return sum_trailing(-0.5 * x.square() - 0.5 * log(2 * pi), len(self.event_shape))

    def sample(self, shape: tuple[int, ...], context: Any = None) -> Tensor:
        return torch.randn(*shape, *self.event_shape, dtype=self.like.dtype, device=self.like.device)


class StudentT(Density):
    """log p(u) = sum -(nu + 1)/2 log(1 + u^2 / nu) + const: heavy tails, mass near the walls of a cell.

    Drawn as normal / sqrt(chi^2 / nu) with the chi^2 as a sum of nu squares, which keeps the draw a differentiable
    function of normals (and capturable in a graph).
    """

    like: Tensor

    def __init__(self, event_shape: tuple[int, ...], degrees: int = 5):
        super().__init__()
        if degrees < 1:
            raise ValueError(f"degrees: got {degrees}; expected at least 1")
        self.event_shape, self.degrees = event_shape, degrees
        self.constant = lgamma((degrees + 1) / 2) - lgamma(degrees / 2) - 0.5 * log(degrees * pi)
        self.register_buffer("like", torch.zeros(()), persistent=False)

    def log_prob(self, x: Tensor, context: Any = None) -> Tensor:
        nu = self.degrees
        return sum_trailing(self.constant - (nu + 1) / 2 * torch.log1p(x.square() / nu), len(self.event_shape))

    def sample(self, shape: tuple[int, ...], context: Any = None) -> Tensor:
        normals = torch.randn(
            self.degrees + 1, *shape, *self.event_shape, dtype=self.like.dtype, device=self.like.device
        )
        return normals[0] / normals[1:].square().mean(0).sqrt()


class Logistic(Density):
    """log p(u) = sum log sigmoid(u) + log sigmoid(-u): the logit of a uniform variable."""

    like: Tensor

    def __init__(self, event_shape: tuple[int, ...]):
        super().__init__()
        self.event_shape = event_shape
        self.register_buffer("like", torch.zeros(()), persistent=False)

    def log_prob(self, x: Tensor, context: Any = None) -> Tensor:
        return sum_trailing(functional.logsigmoid(x) + functional.logsigmoid(-x), len(self.event_shape))

    def sample(self, shape: tuple[int, ...], context: Any = None) -> Tensor:
        share = torch.rand(*shape, *self.event_shape, dtype=self.like.dtype, device=self.like.device)
        eps = torch.finfo(share.dtype).eps
        return share.clamp(eps, 1 - eps).logit()


BASES: dict[str, Callable[[tuple[int, ...]], Density]] = {
    "gaussian": Gaussian,
    "student": StudentT,
    "logistic": Logistic,
}
