"""Latent classes, the law that an estimator's flow starts from."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor
from tqdm import tqdm

from tessella.baselines import CategoricalMixture

CANDIDATES = (1, 16, 64, 256)
MOST_ROWS = 20_000
ITERATIONS = 100
DEARER = 5.0  # a candidate takes about so many times as long as the one before
STRANGERS = 1e-3  # weight of the class whose columns are independent, for rows that belong to no other


@dataclass(frozen=True)
class Classes:
    """log w_m (M) and log P_mj(k), variables below each other, (sum counts, M)."""

    log_weight: Tensor
    log_table: Tensor


def fit_classes(
    counts: Sequence[int],
    train: Tensor,
    validation: Tensor,
    classes: int,
    seconds: float | None,
    seed: int,
    progress: bool,
) -> Classes:
    """The mixture of products of categoricals that the validation rows like best, and a class of independent columns.

    Args:
        counts: categories of each variable.
        train: rows of codes (B, N), in random order; the first 20,000 are used.
        validation: rows that say when to stop, and how many classes.
        classes: how many; 0 tries 1, 16, 64 and 256, as long as more are better.
        seconds: candidates that would take longer are left out; None tries all.
        seed: of the random start.
        progress: show a progress bar.
    """
    best, value = None, -torch.inf
    start = time.perf_counter()
    for candidate in tqdm([classes] if classes else CANDIDATES, "classes", disable=not progress, leave=False):
        began = time.perf_counter()
        mixture = CategoricalMixture(counts, candidate)
        mixture.fit(train[:MOST_ROWS], validation, iterations=ITERATIONS, seed=seed)
        liked = float(mixture.log_prob(validation).mean())
        if best is not None and liked <= value:
            break
        best, value = mixture, liked
        took, spent = time.perf_counter() - began, time.perf_counter() - start
        if seconds is not None and spent + DEARER * took > seconds:
            break
    assert best is not None
    return _with_strangers(best, best.log_frequencies(train[:MOST_ROWS]))


def _with_strangers(mixture: CategoricalMixture, log_marginal: Tensor) -> Classes:
    weight = torch.cat([mixture.log_weight + log(1 - STRANGERS), mixture.log_weight.new_tensor([log(STRANGERS)])])
    return Classes(weight, torch.cat([mixture.log_table, log_marginal[:, None]], 1))
