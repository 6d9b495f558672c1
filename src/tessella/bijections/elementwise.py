"""Increasing maps of the line whose coefficients a network gives: what a coupling does to each coordinate it moves."""

from abc import ABC, abstractmethod
from math import log2

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

LARGEST_LOG_SCALE = 3.0
SPREAD = 1.0  # of a mixture's centres at the start, so that no two of its components are the same


def bounded_log_scale(raw: Tensor, largest: float = LARGEST_LOG_SCALE) -> Tensor:
    """Between -largest and largest, by a tanh: no step of the optimizer can make a layer explode."""
    return largest * torch.tanh(raw / largest)


class Elementwise(ABC):
    """y = f(x; c) for each coordinate, increasing in x, with log dy/dx.

    `coefficients` numbers c belong to each coordinate: (*batch, coefficients, n) for x (*batch, n).
    """

    coefficients: int

    @abstractmethod
    def forward(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """y and log dy/dx."""

    @abstractmethod
    def inverse(self, y: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """x and log dx/dy."""


class Affine(Elementwise):
    """y = x exp(s) + t."""

    coefficients = 2

    def forward(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        log_scale, shift = bounded_log_scale(c[..., 0, :]), c[..., 1, :]
        return x * log_scale.exp() + shift, log_scale

    def inverse(self, y: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        log_scale, shift = bounded_log_scale(c[..., 0, :]), c[..., 1, :]
        return (y - shift) * (-log_scale).exp(), -log_scale


AFFINE = Affine()


class LogisticMixture(Elementwise):
    """y = logit F(x) exp(s) + t with F the distribution function of a mixture of M logistic distributions.

    F carries its mixture to the uniform distribution, the logit that to one logistic: M bumps become one. An affine
    map can only place and stretch what it is given.

    F(x) = sum_i w_i sigma(z_i), z_i = (x - m_i) / r_i, and with both tails in logarithms nothing is lost far out:
    logit F = log sum_i w_i sigma(z_i) - log sum_i w_i sigma(-z_i). The inverse halves an interval: x lies between
    the smallest and the largest of m_i + r_i logit F(x), the places where one component alone has that value.

    >>> LogisticMixture(4).coefficients
    14
    """

    def __init__(self, components: int):
        if components < 1:
            raise ValueError(f"components: got {components}; expected at least 1")
        self.components, self.coefficients = components, 3 * components + 2

    def forward(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        *mixture, affine = self._split(c)
        logit, log_slope = mixture_logit(x, *mixture)
        y, log_scale = AFFINE.forward(logit, affine)
        return y, log_slope + log_scale

    def inverse(self, y: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        *mixture, affine = self._split(c)
        logit, log_scale = AFFINE.inverse(y, affine)
        x, log_slope = mixture_quantile(logit, *mixture)
        return x, log_scale - log_slope

    def _split(self, c: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """log w, m, log r, (*batch, M, n) each, and the affine map's coefficients."""
        weight, centre, raw, affine = c.split([self.components, self.components, self.components, 2], -2)
        start = (
            SPREAD
            * torch.arange(1 - self.components, self.components, 2, dtype=c.dtype, device=c.device)
            / self.components
        )
        return weight.log_softmax(-2), centre + start[:, None], bounded_log_scale(raw), affine


def mixture_logit(x: Tensor, log_weight: Tensor, centre: Tensor, log_scale: Tensor) -> tuple[Tensor, Tensor]:
    """logit F(x), (*batch, n), and the logarithm of its slope F' / (F (1 - F)); log w, m, log r (*batch, M, n)."""
    z = (x[..., None, :] - centre) * (-log_scale).exp()
    below, above = logsigmoid(z), logsigmoid(-z)
    log_below, log_above = (log_weight + below).logsumexp(-2), (log_weight + above).logsumexp(-2)
    log_density = (log_weight + below + above - log_scale).logsumexp(-2)
    return log_below - log_above, log_density - log_below - log_above


def mixture_quantile(logit: Tensor, log_weight: Tensor, centre: Tensor, log_scale: Tensor) -> tuple[Tensor, Tensor]:
    """The x with this logit F(x), (*batch, n), and the logarithm of the slope of logit F there."""
    x = _solve(logit, log_weight, centre, log_scale)
    again, log_slope = mixture_logit(x, log_weight, centre, log_scale)
    zero = (again - logit) - (again - logit).detach()
    x = x - zero * (-log_slope).exp().detach()  # Newton's step: nothing but its derivatives
    return x, mixture_logit(x, log_weight, centre, log_scale)[1]


@torch.no_grad()
def _solve(logit: Tensor, log_weight: Tensor, centre: Tensor, log_scale: Tensor) -> Tensor:
    alone = centre + log_scale.exp() * logit[..., None, :]
    low, high = alone.amin(-2), alone.amax(-2)
    for _ in range(8 - round(log2(torch.finfo(logit.dtype).eps))):  # to the last digit
        middle = (low + high) / 2
        beyond = mixture_logit(middle, log_weight, centre, log_scale)[0] > logit
        low, high = torch.where(beyond, low, middle), torch.where(beyond, middle, high)
    return (low + high) / 2
