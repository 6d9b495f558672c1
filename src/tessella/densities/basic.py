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
    """log p(u) = sum_tokens -(nu + D)/2 log(1 + |u|^2 / nu) + const: the multivariate t in the last dimension.

    Its tail is |u|^-(nu + D). With nu = 1 (multivariate Cauchy) that is what the map into a cell turns into a finite,
    positive density on the walls; a lighter tail vanishes there. Drawn as normal / sqrt(chi^2 / nu), the chi^2 a sum of
    nu squares: a differentiable function of normals that can be captured in a graph.
    """

    like: Tensor

    def __init__(self, event_shape: tuple[int, ...], degrees: int = 1):
        super().__init__()
        if degrees < 1:
            raise ValueError(f"degrees: got {degrees}; expected at least 1")
        self.event_shape, self.degrees = event_shape, degrees
        dim = event_shape[-1]
        self.constant = lgamma((degrees + dim) / 2) - lgamma(degrees / 2) - dim / 2 * log(degrees * pi)
        self.register_buffer("like", torch.zeros(()), persistent=False)

    def log_prob(self, x: Tensor, context: Any = None) -> Tensor:
        nu, dim = self.degrees, self.event_shape[-1]
        radius = x.square().sum(-1) / nu
        return sum_trailing(self.constant - (nu + dim) / 2 * torch.log1p(radius), len(self.event_shape) - 1)

    def sample(self, shape: tuple[int, ...], context: Any = None) -> Tensor:
        size = (*shape, *self.event_shape[:-1], self.event_shape[-1] + self.degrees)
        normals = torch.randn(size, dtype=self.like.dtype, device=self.like.device)
        u, chi = normals.split([self.event_shape[-1], self.degrees], -1)
        return u / chi.square().mean(-1, keepdim=True).sqrt()


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
