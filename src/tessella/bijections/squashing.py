"""Squashing functions a: [0, inf) -> [0, 1), the radial profile of a cell bijection. Variants are data.

Each needs a(0) = 0, a'(0) = 1, a' > 0, a -> 1, and three closed forms; s is the scaled gauge. The tail of a decides how
the base density arrives at the walls: 1 - a(s) ~ 1/s for the softsign, 1/s^2 for the root, e^-s for the exponential.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor


@dataclass(frozen=True)
class Squashing:
    """The profile a(s), through the quantities that the bijection needs.

    Attributes:
        shrink: a(s) / s, with limit 1 at s = 0.
        log_volume: (D - 1) log(a(s) / s) + log a'(s), from (s, D).
        undo: a^-1(t), from (t, 1 - t): the second argument spares the cancellation near the wall.
        degrees: nu where 1 - a(s) ~ 1 / s^nu: the image of Student's t with so many degrees of freedom, whatever D, has
            a density at the wall that neither vanishes nor grows. None where the tail of a is lighter than any power.
    """

    shrink: Callable[[Tensor], Tensor]
    log_volume: Callable[[Tensor, int], Tensor]
    undo: Callable[[Tensor, Tensor], Tensor]
    degrees: int | None


def _off_zero(s: Tensor) -> Tensor:
    """s, with zeros replaced by a number so small that no digit of a limit at 0 changes."""
    return s.clamp_min(torch.finfo(s.dtype).tiny)


def _log_hypot(s: Tensor) -> Tensor:
    """log sqrt(1 + s^2), without squaring large s."""
    return torch.log(torch.hypot(s, torch.ones_like(s)))


def _arctan_shrink(s: Tensor) -> Tensor:
    angle = _off_zero(s * (pi / 2))
    return torch.atan(angle) / angle


def _exponential_shrink(s: Tensor) -> Tensor:
    return -torch.expm1(-_off_zero(s)) / _off_zero(s)


SOFTSIGN = Squashing(  # a = s / (1 + s), the paper's
    shrink=lambda s: 1 / (1 + s),
    log_volume=lambda s, dim: -(dim + 1) * torch.log1p(s),
    undo=lambda t, slack: t / slack,
    degrees=1,
)

ROOT = Squashing(  # a = s / sqrt(1 + s^2)
    shrink=lambda s: 1 / torch.hypot(s, torch.ones_like(s)),
    log_volume=lambda s, dim: -(dim + 2) * _log_hypot(s),
    undo=lambda t, slack: t / (slack * (1 + t)).sqrt(),
    degrees=2,
)

ARCTAN = Squashing(  # a = (2 / pi) arctan(pi s / 2)
    shrink=_arctan_shrink,
    log_volume=lambda s, dim: (dim - 1) * torch.log(_arctan_shrink(s)) - 2 * _log_hypot(s * (pi / 2)),
    undo=lambda t, slack: (2 / pi) / torch.tan(slack * (pi / 2)),
    degrees=1,
)

EXPONENTIAL = Squashing(  # a = 1 - e^-s: light tails, walls are reached within rounding at s ~ 16 in float32
    shrink=_exponential_shrink,
    log_volume=lambda s, dim: (dim - 1) * torch.log(_exponential_shrink(s)) - s,
    undo=lambda t, slack: torch.where(t < 0.5, -torch.log1p(-t), -torch.log(slack)),
    degrees=None,
)

SQUASHINGS: dict[str, Squashing] = {"softsign": SOFTSIGN, "root": ROOT, "arctan": ARCTAN, "exponential": EXPONENTIAL}
