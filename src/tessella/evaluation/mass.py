"""Probabilities of all rows together: they sum, or integrate, to one."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Self

import torch
from torch import Tensor

from tessella.contracts import Batch, Likelihood
from tessella.evaluation.audits import MOST_MASS_LOST, AuditResult
from tessella.evaluation.likelihood import as_batch_of, log_weights

MOST_ROWS_TO_ENUMERATE = 50_000
ROUNDING = 1e-5  # what an exact sum may be away from 1
COARSENESS = 0.01  # what an integral may be away from it
LARGEST_ERROR = 0.03  # of an estimated sum; beyond, it says nothing


@dataclass(frozen=True)
class Grid:
    """sum_i volume_i f(points_i) ~ the integral of f over all rows: points (M, ...) each, volume (M) > 0.

    The volume is 1 in codes and counts, which are summed over, and a weight of quadrature in real numbers.
    """

    points: Batch
    volume: Tensor

    @classmethod
    def of_codes(cls, counts: Iterable[int]) -> Self:
        """Every row of codes.

        >>> Grid.of_codes((2, 2)).points[0].tolist()
        [[0, 0], [0, 1], [1, 0], [1, 1]]
        """
        codes = torch.tensor(list(product(*map(range, counts))))
        return cls((codes,), torch.ones(len(codes), dtype=torch.float64))

    @classmethod
    def of_axis(cls, points: Tensor, volume: Tensor | None = None) -> Self:
        """One column of numbers: its points (M), and what each of them stands for; 1 without it."""
        return cls((points.double()[:, None],), torch.ones_like(points) if volume is None else volume.double())

    def __len__(self) -> int:
        return len(self.volume)

    def times(self, other: Self) -> Self:
        """All pairs, the other's columns after these: in the last tensor if they are of its type, else in one more.

        >>> Grid.of_codes((2,)).times(Grid.of_axis(torch.tensor([0.5]))).points
        (tensor([[0],
                [1]]), tensor([[0.5000],
                [0.5000]], dtype=torch.float64))
        """
        left, right = (i.flatten() for i in torch.meshgrid(*map(torch.arange, (len(self), len(other))), indexing="ij"))
        first, second = tuple(p[left] for p in self.points), tuple(p[right] for p in other.points)
        if first[-1].dtype == second[0].dtype:
            first, second = (*first[:-1], torch.cat([first[-1], second[0]], 1)), second[1:]
        return type(self)((*first, *second), self.volume[left] * other.volume[right])

    def plus(self, other: Self) -> Self:
        """Both, one below the other."""
        points = tuple(torch.cat(pair) for pair in zip(self.points, other.points, strict=True))
        return type(self)(points, torch.cat([self.volume, other.volume]))

    def where(self, chosen: Tensor) -> Self:
        """Only these points, (M) booleans."""
        return type(self)(tuple(part[chosen] for part in self.points), self.volume[chosen])


def sum_to_one_audit(model: Likelihood, counts: tuple[int, ...], samples: int = 100) -> AuditResult | None:
    """sum_c P(c) = 1 over all possible rows of codes; None when there are too many of them.

    For a bound: at most 1 within Monte Carlo error, and not far below. The mean of its importance weights is an
    unbiased estimate of P(c), or of less where the noise does not reach all of c's region, and its error follows from
    their spread. What is missing from 1 is mass that the noise did not find: the slack of the bound.
    """
    if prod(counts) > MOST_ROWS_TO_ENUMERATE:
        return None
    return _judged("sum to one", model, Grid.of_codes(counts), samples, ROUNDING)


def integral_audit(model: Likelihood, grid: Grid, samples: int = 100) -> AuditResult:
    """int P = 1 over rows of codes, counts and real numbers, as `sum_to_one_audit`, up to the grid's coarseness."""
    return _judged("integral", model, grid, samples, COARSENESS)


def _judged(name: str, model: Likelihood, grid: Grid, samples: int, tolerance: float) -> AuditResult:
    total, error = total_mass(model, grid, samples)
    missing = 1 - total
    message = f"P of all rows together = {total:.5f} +- {error:.5f} ({len(grid):,} points)"
    passed: bool | None = True
    if model.exact:
        passed = abs(missing) <= tolerance
        message += f"; expected 1 within {tolerance:g}, since it is exact"
    elif -missing > 4 * error + max(tolerance, 1e-4):
        passed, message = False, f"{message}; expected at most 1: this is no lower bound"
    elif missing - 4 * error > MOST_MASS_LOST:
        passed, message = False, f"{message}; bound too loose: {missing:.1%} of the mass is not found"
    elif error > LARGEST_ERROR:
        passed, message = None, f"{message}; too uncertain, take more samples"
    else:
        message += f"; slack {missing:.1%}"
    return AuditResult(name, passed, message, {"total": total, "error": error, "missing": missing})


@torch.no_grad()
def total_mass(model: Likelihood, grid: Grid, samples: int) -> tuple[float, float]:
    """sum_i volume_i P(points_i), and its Monte Carlo error (0 for exact values)."""
    total, variance, start = 0.0, 0.0, 0
    for weights in log_weights(model, as_batch_of(model, grid.points), samples):  # (S, b)
        volume = grid.volume[start : start + weights.shape[1]].to(weights.device)
        probability = weights.exp() * volume
        total += float(probability.mean(0).sum())
        variance += float((probability.var(0) / len(weights)).sum()) if len(weights) > 1 else 0.0
        start += weights.shape[1]
    return total, variance**0.5
