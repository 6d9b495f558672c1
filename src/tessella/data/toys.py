"""Densities in the plane that one can look at, and their quantized versions, whose distribution is known exactly.

All are float32 and lie in the square [-4, 4]^2, but for a tail that a million samples hardly ever reach.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi

import torch
from torch import Generator, Tensor

Toy = Callable[[int, Generator], Tensor]

RADIUS = 4.0  # the square is [-RADIUS, RADIUS]^2


def eight_gaussians(n: int, generator: Generator) -> Tensor:
    """x = 2.8 (cos a, sin a) + 0.2 z, a a multiple of pi / 4."""
    angle = _pick(8, n, generator) * (pi / 4)
    return _polar(2.8, angle) + 0.2 * _normal(n, generator)


def pinwheel(n: int, generator: Generator) -> Tensor:
    """Five Gaussian blades along a radius, x = (1.8 + 0.45 z_1, 0.18 z_2), turned by 2 pi k / 5 + 0.8 |x|."""
    blade = _pick(5, n, generator) * (2 * pi / 5)
    z1, z2 = _normal(n, generator).unbind(dim=1)
    along, across = 1.8 + 0.45 * z1, 0.18 * z2
    radius = torch.hypot(along, across)
    return _polar(radius, torch.atan2(across, along) + blade + 0.8 * radius)


def two_moons(n: int, generator: Generator) -> Tensor:
    """Half circles of radius 2, (2 cos a - 1, 2 sin a - 0.5) and its mirror image through 0, plus 0.15 z."""
    moon = _polar(2.0, pi * _uniform(n, generator))
    moon -= torch.tensor([1.0, 0.5])
    return _sign(n, generator) * moon + 0.15 * _normal(n, generator)


def checkerboard(n: int, generator: Generator) -> Tensor:
    """Uniform on the eight dark squares, side 2, of a board of 4 x 4."""
    column = _pick(4, n, generator)
    row = 2 * _pick(2, n, generator) + column % 2
    inside = torch.stack([_uniform(n, generator), _uniform(n, generator)], dim=1)
    return 2 * (torch.stack([column, row], dim=1) + inside) - RADIUS


def rings(n: int, generator: Generator) -> Tensor:
    """x = r (cos a, sin a) + 0.08 z, r one of 0.8, 1.6, 2.4, 3.2, a uniform."""
    radius = 0.8 * (1 + _pick(4, n, generator))
    return _polar(radius, 2 * pi * _uniform(n, generator)) + 0.08 * _normal(n, generator)


def two_spirals(n: int, generator: Generator) -> Tensor:
    """x = +-3.4 s (cos 3 pi s, sin 3 pi s) + 0.1 z, s = sqrt(u): almost uniform along the arms."""
    along = _uniform(n, generator).sqrt()
    return _sign(n, generator) * _polar(3.4 * along, 3 * pi * along) + 0.1 * _normal(n, generator)


def swiss_roll(n: int, generator: Generator) -> Tensor:
    """x = 3.4 s (cos 4.5 pi s, sin 4.5 pi s) + 0.1 z, s uniform in [1/3, 1]."""
    along = (1 + 2 * _uniform(n, generator)) / 3
    return _polar(3.4 * along, 4.5 * pi * along) + 0.1 * _normal(n, generator)


TOYS: dict[str, Toy] = {
    "checkerboard": checkerboard,
    "eight_gaussians": eight_gaussians,
    "pinwheel": pinwheel,
    "rings": rings,
    "swiss_roll": swiss_roll,
    "two_moons": two_moons,
    "two_spirals": two_spirals,
}


@dataclass(frozen=True)
class Quantized:
    """P(codes = (i, j)) = probabilities[i, j], the cell of the first coordinate first.

    Attributes:
        name: the key in `TOYS`.
        probabilities: float64 (bins, bins), summing to 1.
    """

    name: str
    probabilities: Tensor

    def sample(self, n: int, generator: Generator) -> Tensor:
        """Codes, int64 (n, 2)."""
        cells = torch.multinomial(self.probabilities.flatten(), n, replacement=True, generator=generator)
        bins = self.probabilities.shape[1]
        return torch.stack([cells // bins, cells % bins], dim=1)

    def entropy(self) -> float:
        """-sum P log P in nats: the entropy floor of every model's mean -log P."""
        return float(torch.special.entr(self.probabilities).sum())


def quantized_toy(name: str, bins: int = 91, *, points: int = 2_000_000, seed: int = 0) -> Quantized:
    """P = frequencies of `points` seeded samples on a grid of bins x bins cells over [-4, 4]^2.

    The distribution is these frequencies themselves, not an estimate of the density: entropy and likelihoods are exact.
    A sample outside the square counts in the nearest cell.

    >>> quantized = quantized_toy("checkerboard", bins=4, points=10_000)
    >>> quantized.sample(3, torch.Generator().manual_seed(0)).shape
    torch.Size([3, 2])
    """
    if name not in TOYS:
        raise ValueError(f"toy {name!r}: not known; expected one of {', '.join(TOYS)}")
    if bins < 1 or points < 1:
        raise ValueError(f"bins, points: got {bins} and {points}; expected both positive")
    samples = TOYS[name](points, torch.Generator().manual_seed(seed))
    i, j = ((samples / (2 * RADIUS) + 0.5) * bins).floor().long().clamp(0, bins - 1).unbind(dim=1)
    counts = torch.bincount(i * bins + j, minlength=bins * bins)
    return Quantized(name, counts.reshape(bins, bins).double() / points)


def _polar(radius: Tensor | float, angle: Tensor) -> Tensor:
    return torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)


# Draws are float32 whatever torch's default is, so that a seed means one sample and a quantized toy one distribution.


def _normal(n: int, generator: Generator) -> Tensor:
    """Standard normal, (n, 2)."""
    return torch.randn(n, 2, generator=generator, dtype=torch.float32)


def _uniform(n: int, generator: Generator) -> Tensor:
    return torch.rand(n, generator=generator, dtype=torch.float32)


def _pick(choices: int, n: int, generator: Generator) -> Tensor:
    """One of 0 .. choices - 1, as real numbers."""
    return torch.randint(choices, (n,), generator=generator, dtype=torch.float32)


def _sign(n: int, generator: Generator) -> Tensor:
    """+1 or -1 with equal chance, (n, 1)."""
    return 2 * _pick(2, n, generator)[:, None] - 1
