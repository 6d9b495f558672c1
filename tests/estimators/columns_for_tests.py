"""Columns of numbers whose distribution is known: rows of them, and the log-likelihood of each row."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy import stats


@dataclass(frozen=True)
class Known:
    """draw(rng, n) -> numbers, NaN where missing; log_prob of these numbers; the type that should be inferred."""

    draw: Callable[[Generator, int], np.ndarray]
    log_prob: Callable[[np.ndarray], np.ndarray]
    kind: str = "continuous"


def rounded(distribution, step: float) -> Known:
    """The multiples of a step that are nearest to the draws of a distribution."""

    def log_prob(v: np.ndarray) -> np.ndarray:
        return np.log(distribution.cdf(v + step / 2) - distribution.cdf(v - step / 2))

    kind = "count" if step == 1 else "grid"
    return Known(
        lambda rng, n: np.round(np.round(distribution.rvs(n, random_state=rng) / step) * step, 6), log_prob, kind
    )


def mixed(share: float, atom: float, other: Known) -> Known:
    """`atom` in a share of the rows; the atom may be NaN. A mass of the other distribution at the atom counts, too."""

    def draw(rng: Generator, n: int) -> np.ndarray:
        return np.where(rng.random(n) < share, atom, other.draw(rng, n))

    def log_prob(v: np.ndarray) -> np.ndarray:
        here = np.isnan(v) if np.isnan(atom) else v == atom
        rest = np.exp(other.log_prob(np.where(here, 1.0 if np.isnan(atom) else atom, v))) * (1 - share)
        both = 0.0 if np.isnan(atom) or other.kind == "continuous" else rest
        return np.log(np.where(here, share + both, rest))

    return Known(draw, log_prob, other.kind)


def heaped(distribution, step: int, share: float) -> Known:
    """Integers, a share of them rounded to multiples of a step."""
    fine, coarse = rounded(distribution, 1), rounded(distribution, step)

    def draw(rng: Generator, n: int) -> np.ndarray:
        return np.where(rng.random(n) < share, coarse.draw(rng, n), fine.draw(rng, n))

    def log_prob(v: np.ndarray) -> np.ndarray:
        on = np.where(v % step == 0, np.exp(coarse.log_prob(v)), 0)
        return np.log(share * on + (1 - share) * np.exp(fine.log_prob(v)))

    return Known(draw, log_prob, "count")


def smooth(distribution) -> Known:
    """A density."""
    return Known(lambda rng, n: distribution.rvs(n, random_state=rng), distribution.logpdf)


KNOWN = {
    "92% zeros and integers": mixed(0.92, 0.0, rounded(stats.lognorm(1, scale=3000), 1)),
    "half zeros and a continuum": mixed(0.5, 0.0, smooth(stats.expon())),
    "two atoms and a continuum": mixed(0.2, 5.0, mixed(0.3, 0.0, smooth(stats.norm(2, 3)))),
    "half of them 40": mixed(0.5, 40.0, rounded(stats.norm(40, 12), 1)),
    "heaped at hundreds": heaped(stats.norm(3000, 800), 100, 0.6),
    "grid of 0.01": rounded(stats.norm(5, 1.5), 0.01),
    "prices": rounded(stats.lognorm(1, scale=8), 0.01),
    "normal": smooth(stats.norm()),
    "uniform": smooth(stats.uniform()),
    "Cauchy": smooth(stats.cauchy()),
    "lognormal": smooth(stats.lognorm(2)),
    "a third missing": mixed(1 / 3, np.nan, smooth(stats.norm(10, 2))),
    "zeros, missing, a grid": mixed(0.1, np.nan, mixed(0.6, 0.0, rounded(stats.expon(scale=3), 0.1))),
}
