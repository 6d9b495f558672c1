"""The contract of every baseline, and the flat tables they share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import isfinite

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.contracts import Batch

NUMBERS_AT_ONCE = 2**24
JEFFREYS = 0.5  # rows that every category is given before counting; see `Independent.fit`


class Baseline(nn.Module, ABC):
    """P(c) > 0 for every row c of codes, sum_c P(c) = 1: an exact likelihood, and rows drawn from it.

    A model is restored by its constructor's arguments and its `state_dict`. Tables of numbers for each category are
    flat: variable j owns the entries offset_j, ..., offset_j + K_j - 1, so that one variable with thousands of
    categories does not make the others pay. Where a network needs a rectangle, (N, K) with K the largest count,
    `present` says which entries exist.

    Args:
        counts: number of categories K_j of each variable.
        numbers_per_row: about how many numbers `_log_prob` and `_sample` hold for a row; long inputs are cut
            accordingly.
    """

    exact = True
    counts: tuple[int, ...]
    count: Tensor
    offset: Tensor
    present: Tensor

    def __init__(self, counts: Sequence[int], numbers_per_row: int):
        super().__init__()
        self.counts = tuple(counts)
        if not self.counts or min(self.counts) < 1:
            raise ValueError(f"counts: got {self.counts}; expected at least one variable, each with a category or more")
        self.rows_at_once = max(1, NUMBERS_AT_ONCE // numbers_per_row)
        count = torch.tensor(self.counts)
        self.register_buffer("count", count, persistent=False)  # (N)
        self.register_buffer("offset", count.cumsum(0) - count, persistent=False)  # (N)
        self.register_buffer("present", torch.arange(max(self.counts)) < count[:, None], persistent=False)  # (N, K)

    def log_prob(self, codes: Tensor, samples: int | None = None) -> Tensor:
        """log P(codes) in nats, exact: (B, N) -> (B). It needs no `samples`; bounds do."""
        self._check("codes", codes)
        return torch.cat([self._log_prob(part) for part in codes.long().split(self.rows_at_once)])

    @torch.no_grad()
    def sample(self, rows: int) -> Batch:
        """New rows: (codes,), int64 (rows, N)."""
        check_at_least_one(rows=rows)
        most = self.rows_at_once
        return (torch.cat([self._sample(min(most, rows - start)) for start in range(0, rows, most)]),)

    def nll(self, codes: Tensor) -> Tensor:
        """-log P of every row: (B, N) -> (B)."""
        return -self.log_prob(codes)

    @abstractmethod
    def _log_prob(self, codes: Tensor) -> Tensor:
        """`log_prob` of codes that were checked."""

    @abstractmethod
    def _sample(self, rows: int) -> Tensor:
        """`sample`, for few enough rows."""

    def log_frequencies(self, codes: Tensor, smoothing: float = JEFFREYS) -> Tensor:
        """log (n_k + s) / (n + s K_j) of every category, flat (sum K), in double precision."""
        self._check("codes", codes)
        check_positive("smoothing", smoothing)
        n = torch.bincount((codes + self.offset).flatten(), minlength=sum(self.counts)).double()
        total = (len(codes) + smoothing * self.count.double()).repeat_interleave(self.count)
        return (n + smoothing).log() - total.log()

    def uniform(self) -> Tensor:
        """-log K_j for every category, flat (sum K), in double precision."""
        return -self.count.double().log().repeat_interleave(self.count)

    def segment(self, variable: int) -> slice:
        """Where the categories of a variable lie in a flat table."""
        start = sum(self.counts[:variable])
        return slice(start, start + self.counts[variable])

    def _check(self, name: str, codes: Tensor) -> None:
        checks.indices(name, codes, (len(codes), len(self.counts)), self.count)
        if len(codes) == 0:
            raise ValueError(f"{name}: got no rows; expected at least one")


def check_at_least_one(**values: int) -> None:
    """Each of the named values is 1 or more."""
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name}: got {value}; expected at least 1")


def check_positive(name: str, value: float) -> None:
    """`value` is a finite number above 0."""
    if not (isfinite(value) and value > 0):
        raise ValueError(f"{name}: got {value}; expected a positive number")


def draw(log_probability: Tensor) -> Tensor:
    """A category for each row, k ~ exp(l_k) / sum exp(l): (*batch, K) -> (*batch)."""
    probability = log_probability.softmax(-1)
    return torch.multinomial(probability.flatten(0, -2), 1).view(probability.shape[:-1])
