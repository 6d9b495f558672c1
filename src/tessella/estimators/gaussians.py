"""Gaussian mixtures by expectation maximisation: what `MixtureFlow` starts from, and keeps where it learns no more."""

import time
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from sklearn import mixture
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from tessella.densities import Density, GaussianMixture

CANDIDATES = (1, 2, 4, 8, 16, 32, 64, 128)
MOST_ROWS = 20_000
ITERATIONS = 100
DEARER = 3.0  # a candidate takes up to so many times as long as the one before
STALE = 2  # candidates without a gain, before more components are given up
RIDGES = (1e-6, 1e-4, 1e-2)  # variances that are added, the next where a component collapsed; columns have variance 1
ROWS_AT_ONCE = 1000


def fit_gaussians(
    train: Tensor,
    validation: Tensor,
    candidates: Sequence[int] = CANDIDATES,
    seconds: float | None = None,
    seed: int = 0,
) -> dict[int, tuple[GaussianMixture, float]]:
    """A Gaussian mixture for each number of components, and its mean -log p of the validation rows, in nats.

    Args:
        train: standardised rows (M, D), in random order; the first 20,000 are used.
        validation: rows that say when more components are no better: after two numbers without a gain.
        candidates: numbers of components, rising; those above half the number of rows are left out, but for the first.
        seconds: candidates that would take longer are left out; None tries all.
        seed: of the random start.
    """
    rows, began = train[:MOST_ROWS].double().numpy(), time.perf_counter()
    fitted: dict[int, tuple[GaussianMixture, float]] = {}
    for components in candidates:
        start = time.perf_counter()
        if fitted and (components > len(rows) // 2 or _stale(fitted)):
            break
        gaussians = _fitted(rows, components, seed)
        if gaussians is None:
            break
        fitted[components] = gaussians, mean_nll(gaussians, validation)
        took, spent = time.perf_counter() - start, time.perf_counter() - began
        if seconds is not None and spent + DEARER * took > seconds:
            break
    if not fitted:
        raise ArithmeticError(f"components: no Gaussian mixture of {candidates[0]} can be fitted to these rows")
    return fitted


@torch.no_grad()
def mean_nll(density: Density, rows: Tensor) -> float:
    """Mean -log p of rows (M, D), in nats, in the density's precision."""
    like = next(density.parameters())
    parts = [density.log_prob(part.to(like)).double().cpu() for part in rows.split(ROWS_AT_ONCE)]
    return -float(torch.cat(parts).mean())


def _stale(fitted: dict[int, tuple[GaussianMixture, float]]) -> bool:
    values = [value for _, value in fitted.values()]
    return len(values) - 1 - int(np.argmin(values)) >= STALE


def _fitted(rows: np.ndarray, components: int, seed: int) -> GaussianMixture | None:
    """None where a component collapses, however much variance is added."""
    for ridge in RIDGES:
        found = mixture.GaussianMixture(components, reg_covar=ridge, max_iter=ITERATIONS, random_state=seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # what is not at its end is a start all the same
                found.fit(rows)
            return GaussianMixture.of(
                *(torch.from_numpy(part) for part in (found.weights_, found.means_, found.covariances_))
            )
        except (ValueError, RuntimeError):
            continue
    return None
