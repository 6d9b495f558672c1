"""Squashing functions a: [0, inf) -> [0, 1), the radial profile of a cell bijection. Variants are data.

Each needs a(0) = 0, a'(0) = 1, a' > 0, a -> 1, and three closed forms; s is the scaled gauge. The tail of a decides how
the base density arrives at the walls: 1 - a(s) ~ 1/(p s^p) for the powers, of which the softsign is p = 1 and the root
p = 2, and e^-s for the exponential.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import Literal

import torch
from torch import Tensor

Profile = float | Literal["softsign", "root", "arctan", "exponential"]
"""A squashing by name, or by its power p."""


@dataclass(frozen=True)
class Squashing:
    """The profile a(s), through the quantities that the bijection needs.

    Attributes:
        shrink: a(s) / s, with limit 1 at s = 0.
        log_volume: (D - 1) log(a(s) / s) + log a'(s), from (s, D).
        undo: a^-1(t), from (t, 1 - t): the second argument spares the cancellation near the wall.
        degrees: nu where 1 - a(s) ~ 1 / s^nu: the image of Student's t with so many degrees of freedom, whatever D, has
            a density at the wall that neither vanishes nor grows. None where the tail of a is lighter than any power.
        power: p where a is the power a_p of a number; None elsewhere.
    """

    shrink: Callable[[Tensor], Tensor]
    log_volume: Callable[[Tensor, int], Tensor]
    undo: Callable[[Tensor, Tensor], Tensor]
    degrees: float | None
    power: float | None = None


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


def power(p: float | Tensor) -> Squashing:
    """a_p(s) = s / (1 + s^p)^(1/p), p >= 1: nearly a scaling inside of the cell for large p, bent close to the wall.

    log_volume = -(D + p) / p log(1 + s^p). A point at 0.95 of the way to the wall has s = 19 for p = 1, 3.0 for p = 2
    and 1.09 for p = 8; in many dimensions most of a cell lies out there.

    Args:
        p: a number, or a tensor to be learned.

    >>> [round(float(power(p).undo(torch.tensor(0.95), torch.tensor(0.05))), 2) for p in (1.0, 2.0, 8.0)]
    [19.0, 3.04, 1.09]
    """
    if isinstance(p, float | int):
        if not p >= 1:
            raise ValueError(f"squashing: got the power {p}; expected at least 1")
        if p in (1, 2):
            return SOFTSIGN if p == 1 else ROOT

    def log_one_plus(s: Tensor) -> Tensor:
        """log(1 + s^p), without the power of a large s, and with no slope where s is nothing."""
        exponent = p * s.clamp_min(torch.finfo(s.dtype).tiny ** 0.5).log()
        return torch.logaddexp(exponent, torch.zeros_like(exponent))

    def undo(t: Tensor, slack: Tensor) -> Tensor:
        """t / (1 - t^p)^(1/p), 1 - t^p = -expm1(p log(1 - slack)), without a slope where rounding loses t."""
        log_t = torch.log1p(-slack.clamp_max(1 - torch.finfo(slack.dtype).eps))
        return t * torch.exp(-torch.log(-torch.expm1(p * log_t)) / p)

    return Squashing(
        shrink=lambda s: torch.exp(-log_one_plus(s) / p),
        log_volume=lambda s, dim: -(dim + p) / p * log_one_plus(s),
        undo=undo,
        degrees=None if isinstance(p, Tensor) else float(p),
        power=None if isinstance(p, Tensor) else float(p),
    )


SOFTSIGN = Squashing(  # a = s / (1 + s), the paper's
    shrink=lambda s: 1 / (1 + s),
    log_volume=lambda s, dim: -(dim + 1) * torch.log1p(s),
    undo=lambda t, slack: t / slack,
    degrees=1,
    power=1,
)

ROOT = Squashing(  # a = s / sqrt(1 + s^2)
    shrink=lambda s: 1 / torch.hypot(s, torch.ones_like(s)),
    log_volume=lambda s, dim: -(dim + 2) * _log_hypot(s),
    undo=lambda t, slack: t / (slack * (1 + t)).sqrt(),
    degrees=2,
    power=2,
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


def profile_of(squashing: Profile) -> Squashing:
    """The profile of that name, or of that power.

    >>> profile_of(1.0) is profile_of("softsign")
    True
    """
    if not isinstance(squashing, str):
        return power(float(squashing))
    if squashing not in SQUASHINGS:
        raise ValueError(f"squashing: got {squashing!r}; expected one of {', '.join(SQUASHINGS)}, or a power p >= 1")
    return SQUASHINGS[squashing]
