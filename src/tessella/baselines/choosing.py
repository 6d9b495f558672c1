"""A mixture of categoricals with as many components as validation rows like: what flows can start from."""

import time
from collections.abc import Sequence
from math import log

import torch
from torch import Tensor

from tessella.baselines.categorical_mixture import CategoricalMixture
from tessella.progress import each

CANDIDATES = (1, 16, 64, 128, 256)
MOST_ROWS = 20_000
ITERATIONS = 100
LARGEST = 2**24  # probabilities of a mixture, unless a number of components is asked for
DEARER = 4.0  # a candidate takes up to so many times as long as the one before
BACKGROUND = 1e-3  # weight of the background component, whose columns are independent, for rows that belong to no other


def fit_mixture(
    counts: Sequence[int],
    train: Tensor,
    validation: Tensor,
    components: int = 0,
    seconds: float | None = None,
    seed: int = 0,
    progress: bool = False,
) -> CategoricalMixture:
    """The mixture of products of categoricals that the validation rows like best, and a background component.

    Args:
        counts: categories of each variable.
        train: rows of codes (B, N), in random order; the first 20,000 are used.
        validation: rows that say when to stop, and how many components.
        components: how many; 0 tries 1, 16, 64, 128 and 256, as long as more are better and the tables do not
            become enormous.
        seconds: candidates that would take longer are left out; None tries all.
        seed: of the random start.
        progress: show a progress bar.
    """
    best, value = None, -torch.inf
    rows, start = train[:MOST_ROWS], time.perf_counter()
    for candidate in each([components] if components else CANDIDATES, "numbers of components tried", progress):
        if best is not None and candidate * sum(counts) > LARGEST:
            break
        began = time.perf_counter()
        mixture = CategoricalMixture(counts, candidate).to(train.device)
        mixture.fit(rows, validation, iterations=ITERATIONS, seed=seed)
        liked = float(mixture.log_prob(validation).mean())
        if best is not None and liked <= value:
            break
        best, value = mixture, liked
        took, spent = time.perf_counter() - began, time.perf_counter() - start
        if seconds is not None and spent + DEARER * took > seconds:
            break
    assert best is not None
    return _with_background(best, rows)


def _with_background(mixture: CategoricalMixture, rows: Tensor) -> CategoricalMixture:
    """One component more: the product of the marginals, with little weight."""
    wider = CategoricalMixture(mixture.counts, mixture.components + 1)
    rest = mixture.log_weight.new_tensor([log(BACKGROUND)])
    wider.log_weight = torch.cat([mixture.log_weight + log(1 - BACKGROUND), rest])
    wider.log_table = torch.cat([mixture.log_table, mixture.log_frequencies(rows)[:, None]], 1)
    return wider
