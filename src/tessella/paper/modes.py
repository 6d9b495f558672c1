"""Data with any number of modes in any dimension, whose density is known: what `regimes` asks about."""

from dataclasses import dataclass
from math import log, pi

import torch
from torch import Generator, Tensor

CANDIDATES = 16  # of each mean, of which the one furthest from the others is taken
STRETCH = log(2.0)  # principal standard deviations of a mode lie between 1/2 and 2
BEND = 1.5  # standard deviations
ROWS_AT_ONCE = 1_000


@dataclass(frozen=True)
class Modes:
    """p(y) = 1/M sum_m N(y; mu_m, A_m A_m^T),  x = b(y): a density with M modes, fixed by four numbers and a seed.

    Every |det A_m| is 1, so that a mode has standard deviation 1 on (geometric) average over its axes, which point
    anywhere; the mean distance from a mean to the next is `separation`. b is the identity, or a shear of volume 1 along
    random axes that bends modes into sickles, for which no Gaussian is right: (u, v) -> (u, v + BEND sin(u)).

    >>> x = Modes(dim=3, modes=4, separation=8.0, bent=True).rows(1000, torch.Generator().manual_seed(1))
    >>> x.shape
    torch.Size([1000, 3])
    """

    dim: int
    modes: int
    separation: float
    bent: bool = False
    seed: int = 0

    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Means (M, D), factors A (M, D, D), axes of the shear (D, D); float64."""
        generator = Generator().manual_seed(self.seed)
        means = _apart(self.modes, self.dim, generator)
        if self.modes > 1:
            gaps = torch.cdist(means, means).fill_diagonal_(torch.inf).amin(-1)
            means = means * (self.separation / gaps.mean())
        spread = STRETCH * (2 * _uniform(generator, self.modes, self.dim) - 1)
        spread = (spread - spread.mean(-1, keepdim=True)).exp()
        factors = torch.linalg.qr(_normal(generator, self.modes, self.dim, self.dim))[0] * spread[:, None]
        return means, factors, torch.linalg.qr(_normal(generator, self.dim, self.dim))[0]

    def rows(self, count: int, generator: Generator) -> Tensor:
        """Independent draws, float32 (count, D)."""
        means, factors, axes = self.parts()
        mode = torch.randint(self.modes, (count,), generator=generator)
        y = _normal(generator, count, self.dim)
        for m in range(self.modes):
            y[mode == m] = y[mode == m] @ factors[m].T + means[m]
        return (self._sheared(y, axes, BEND) if self.bent else y).float()

    def log_prob(self, x: Tensor) -> Tensor:
        """log p of rows (count, D), float64 (count,)."""
        means, factors, axes = self.parts()
        inverse = torch.linalg.inv(factors)
        y = self._sheared(x.double(), axes, -BEND) if self.bent else x.double()
        parts = []
        for some in y.split(ROWS_AT_ONCE):
            z = torch.einsum("mij,nmj->nmi", inverse, some[:, None] - means)
            parts.append((-z.square().sum(-1) / 2).logsumexp(-1))
        return torch.cat(parts) - self.dim / 2 * log(2 * pi) - log(self.modes)

    def _sheared(self, y: Tensor, axes: Tensor, bend: float) -> Tensor:
        """The shear; with -bend its inverse."""
        first, second = (y @ axes).tensor_split([self.dim // 2], -1)
        moved = second.clone()
        moved[:, : first.shape[1]] += bend * first.sin()
        return torch.cat([first, moved], -1) @ axes.T


def _apart(count: int, dim: int, generator: Generator) -> Tensor:
    """Points of a normal distribution that keep away from each other, (count, dim)."""
    points = _normal(generator, 1, dim)
    while len(points) < count:
        candidates = _normal(generator, CANDIDATES, dim)
        furthest = torch.cdist(candidates, points).amin(-1).argmax()
        points = torch.cat([points, candidates[furthest, None]])
    return points


def _normal(generator: Generator, *size: int) -> Tensor:
    return torch.randn(size, generator=generator, dtype=torch.float64)


def _uniform(generator: Generator, *size: int) -> Tensor:
    return torch.rand(size, generator=generator, dtype=torch.float64)
