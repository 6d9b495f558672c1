"""A density inside an interval: a logistic that the map of an ordinal cell pushes into it."""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

SHY = 1e-3  # the interval is the middle of the cell, all but so much at either end: densities at its ends are finite
EVEN = 1e-3  # share of the mass that is spread evenly, so that no value of an interval is ever out of the question
END = log((1 - SHY) / SHY)  # the interval is [-END, END] in the space of the logistic
SHARPEST = 6.0  # |log s|


class Places(NamedTuple):
    """Where values lie in intervals, tensors of one shape: a point t of [0, 1], or on a grid all from t to t + dt.

    z = logit(SHY + (1 - 2 SHY) t) is the place in the space of the logistic.
    """

    low: Tensor
    """z at t."""
    high: Tensor
    """z at t + dt; the same for a point."""
    log_width: Tensor
    """log of their difference; log dz/dv for a point."""
    log_even: Tensor
    """log dt, or log dt/dv: the likelihood of a value v where the density is uniform."""
    grid: Tensor
    """Whether it is on a grid."""


def places(t: Tensor, log_even: Tensor, grid: Tensor, dtype: torch.dtype) -> Places:
    """t, log dt and whether it is a step of a grid -> places; computed in the precision of t, given back in `dtype`.

    Small steps lose no digits: beyond what differences can tell, dz is dz/dt dt.
    """
    step = torch.where(grid, log_even.exp(), 0)
    inner, more = SHY + (1 - 2 * SHY) * t, (1 - 2 * SHY) * step
    low = torch.logit(inner)
    widths = torch.log1p(more / inner) - torch.log1p(-(more / (1 - inner)).clamp_max(1 - SHY / 2))
    slope = log_even + log(1 - 2 * SHY) - inner.log() - torch.log1p(-inner)
    log_width = torch.where(more > 1e-12, widths.clamp_min(1e-300).log(), slope)
    return Places(low.to(dtype), (low + widths).to(dtype), log_width.to(dtype), log_even.to(dtype), grid)


def log_density(where: Places, shape: Tensor) -> Tensor:
    """log [(1 - e) (F(t + dt) - F(t)) + e dt],  F(t) = G((z(t) - m) / s) up to an affine map, G the logistic's.

    A mass on a grid, else the density of v; both are exact, and for shape 0, m = 0 and s = 1, uniform.

    Args:
        where: of the values, (*batch).
        shape: m and log s before they are bounded, (*batch, 2).
    """
    m, log_s = bounded(shape)
    rate = torch.exp(-log_s)
    low, high, log_width = (where.low - m) * rate, (where.high - m) * rate, where.log_width - log_s
    logistic = functional.logsigmoid(high) + functional.logsigmoid(-low)
    logistic = logistic + torch.where(where.grid, _log_between(log_width), log_width)
    total = functional.logsigmoid((END - m) * rate) + functional.logsigmoid((END + m) * rate)
    total = total + torch.log(-torch.expm1(-2 * END * rate))
    ahead = logistic - total - where.log_even
    return where.log_even + torch.logaddexp(ahead + log(1 - EVEN), torch.full_like(ahead, log(EVEN)))


def cumulative(t: Tensor, shape: Tensor) -> Tensor:
    """F(t) = (1 - e) (G_t - G_0) / (G_1 - G_0) + e t,  G_t = G((z(t) - m) / s): (*batch), in double precision."""
    m, log_s = (part.double() for part in bounded(shape))
    here, first, last = (_level(z, m, log_s) for z in (_logit(t), -END, END))
    return (1 - EVEN) * (here - first) / (last - first) + EVEN * t


def draw(shape: Tensor, first: Tensor | None = None, last: Tensor | None = None) -> Tensor:
    """t with that density, (*batch, 2) -> (*batch), in double precision.

    Args:
        shape: m and log s before they are bounded.
        first, last: where t is to lie, (*batch) each; without them anywhere in [0, 1).
    """
    m, log_s = (part.double() for part in bounded(shape))
    least, most = (_level(z, m, log_s) for z in (-END, END))
    low, high = (end if t is None else _level(_logit(t), m, log_s) for t, end in ((first, least), (last, most)))
    first, last = torch.zeros_like(m) if first is None else first, torch.ones_like(m) if last is None else last
    level = low + torch.rand_like(m) * (high - low)
    t = (torch.sigmoid(m + torch.logit(level) * log_s.exp()) - SHY) / (1 - 2 * SHY)
    even, logistic = EVEN * (last - first), (1 - EVEN) * (high - low) / (most - least)
    t = torch.where(torch.rand_like(m) * (even + logistic) < even, first + torch.rand_like(m) * (last - first), t)
    return torch.minimum(torch.maximum(t, first), last).clamp_max(1 - torch.finfo(t.dtype).eps)


def _level(z: Tensor | float, m: Tensor, log_s: Tensor) -> Tensor:
    """G((z - m) / s), the logistic's distribution function."""
    return torch.sigmoid((z - m) * torch.exp(-log_s))


def _logit(t: Tensor) -> Tensor:
    """z(t)."""
    return torch.logit(SHY + (1 - 2 * SHY) * t)


def bounded(shape: Tensor) -> tuple[Tensor, Tensor]:
    """m inside the interval and log s, which a network may ask for without bounds, (*batch, 2) -> (*batch) each."""
    m, log_s = shape.unbind(-1)
    return END * torch.tanh(m / END), SHARPEST * torch.tanh(log_s / SHARPEST)


def _log_between(log_width: Tensor) -> Tensor:
    """log(1 - exp(-w)), which is G(a + w) - G(a) but for the two factors that `log_density` has already.

    G(b) - G(a) = G(b) G(-a) (1 - exp(a - b)).
    """
    width = log_width.clamp_min(-15).exp()
    return torch.where(log_width < -15, log_width, torch.log(-torch.expm1(-width)))
