"""What one would use instead, on the same rows and in the same units: exact likelihoods of mixed tables."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tessella.baselines import Baseline, ChowLiu, Independent
from tessella.baselines.classes import fit_classes
from tessella.estimators.bins import Bins
from tessella.estimators.encoding import Encoding

BINS = (8, 16, 32)  # of each number
SECONDS_FOR_CLASSES = 30.0  # as many classes as the validation rows like and this leaves time for
SMOOTHINGS = (1.0, 8.0)  # of the tree
LARGEST_TABLE = 2**22  # pairs of categories that the tree may join; it is also tried with a quarter of the rows


@dataclass(frozen=True)
class Rival:
    """log p(row) = log P(codes) + log p(numbers | bins): a discrete model that scores the rows of a mixed table."""

    name: str
    model: Baseline
    bins: Bins
    rows: int
    """Training rows it learned from."""

    def log_prob(self, rows: Tensor) -> Tensor:
        """Exact log-likelihood of rows (B, G + R), in nats: (B)."""
        return self.model.log_prob(self.bins.codes(rows)) + self.bins.log_spread(rows)


Candidates = Callable[[Sequence[int], Tensor, Tensor], Iterator[Baseline]]


def _mixtures(counts: Sequence[int], train: Tensor, validation: Tensor) -> Iterator[Baseline]:
    yield fit_classes(counts, train, validation, seconds=SECONDS_FOR_CLASSES)


def _trees(counts: Sequence[int], train: Tensor, validation: Tensor) -> Iterator[Baseline]:
    for largest in (LARGEST_TABLE, len(train) // 4):
        for smoothing in SMOOTHINGS:
            yield ChowLiu(counts).fit(train, smoothing, largest_table=largest)


def _independent(counts: Sequence[int], train: Tensor, validation: Tensor) -> Iterator[Baseline]:
    yield Independent(counts).fit(train)


RIVALS: dict[str, tuple[Candidates, int]] = {
    "latent classes": (_mixtures, 20_000),
    "Chow-Liu tree": (_trees, 50_000),
    "independent columns": (_independent, 50_000),
}
"""Models by name, and how many training rows they are given at most."""


def fit_rivals(encoding: Encoding, train: Tensor, validation: Tensor) -> list[Rival]:
    """One of each, with the settings that the validation rows like best; rows are (B, G + R), in random order."""
    return [_best(name, encoding, train, validation) for name in RIVALS]


@torch.no_grad()
def _best(name: str, encoding: Encoding, train: Tensor, validation: Tensor) -> Rival:
    candidates, most = RIVALS[name]
    rows = train[:most]
    tried = []
    for bins in [Bins(encoding, rows, number) for number in (BINS if encoding.numbers else BINS[:1])]:
        for model in candidates(bins.counts, bins.codes(rows), bins.codes(validation)):
            rival = Rival(name, model, bins, len(rows))
            tried.append((float(rival.log_prob(validation).mean()), rival))
    return max(tried, key=lambda pair: pair[0])[1]
