"""Rows of a mixed table as rows of categories, with what that leaves out: an exact likelihood for any discrete model.

log p(row) = log P(codes) + sum_numbers log p(v | bin of v)
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tessella.estimators.columns import Column
from tessella.estimators.encoding import Encoding

NARROWEST = 1e-3  # of the median bin; two numbers that differ by rounding do not make a bin of enormous density


@dataclass(frozen=True)
class NumberBins:
    """p(v | bin) = 1 / width between the edges; L / (L + d)^2 at distance d beyond them, L their span.

    For counts, width is the number of integers in the bin, and beyond the edges the mass is that of [d, d + 1). Every
    finite number has a positive likelihood. The codes: the bins, then below, above, and missing.

    Args:
        edges: of half-open bins, rising, (bins + 1); integers for counts.
        unit: it is a count.
    """

    edges: Tensor
    unit: bool

    @classmethod
    def of(cls, column: Column, values: np.ndarray, most: int) -> "NumberBins":
        """At most so many bins, at the quantiles of a column's training values."""
        unit = column.kind != "continuous"
        if len(np.unique(values)) < 2:
            first = float(values[0]) if len(values) else column.low
            return cls(torch.tensor([first, first + column.high - column.low], dtype=torch.float64), unit)
        inner = np.quantile(values, np.linspace(0, 1, most + 1)[:-1])
        end = values.max() + 1 if unit else np.nextafter(values.max(), np.inf)
        return cls(torch.from_numpy(_apart(np.append(np.floor(inner) if unit else inner, end))), unit)

    @property
    def bins(self) -> int:
        """Bins between the edges."""
        return len(self.edges) - 1

    def codes(self, values: Tensor, present: Tensor) -> Tensor:
        """The bin of every value, (B)."""
        inside = torch.searchsorted(self.edges, values.contiguous(), right=True) - 1
        code = torch.where(values < self.edges[0], self.bins, inside)
        code = torch.where(values >= self.edges[-1], self.bins + 1, code)
        return torch.where(present, code, self.bins + 2)

    def log_spread(self, values: Tensor, present: Tensor) -> Tensor:
        """log p(v | bin of v), 0 where it is missing, (B)."""
        code, span = self.codes(values, present), self.edges[-1] - self.edges[0]
        width = self.edges.diff()[code.clamp_max(self.bins - 1)]
        under, over = (self.edges[0] - values - float(self.unit)).clamp_min(0), (values - self.edges[-1]).clamp_min(0)
        reach = span + torch.maximum(under, over)
        beyond = span.log() - reach.log() - (reach + float(self.unit)).log()
        return torch.where(present, torch.where(code < self.bins, -width.log(), beyond), 0)


def _apart(edges: np.ndarray) -> np.ndarray:
    """The edges that are not too near each other, the first and the last always among them."""
    edges = np.unique(edges)
    least = NARROWEST * np.median(np.diff(edges))
    kept = [edges[0]]
    for edge in edges[1:-1]:
        if min(edge - kept[-1], edges[-1] - edge) >= least:
            kept.append(edge)
    return np.array([*kept, edges[-1]])


class Bins:
    """Rows (B, G + R) -> codes (B, N): the categorical columns as they are, then every number's bin.

    Args:
        encoding: of the rows.
        rows: training rows, whose quantiles are the edges.
        most: bins of each number.
    """

    def __init__(self, encoding: Encoding, rows: Tensor, most: int):
        self.indicators, self.first = encoding.indicators, len(encoding.counts)
        # A table of single values has one token that says nothing, and it must have a variable.
        self.categories = max(len(encoding.categorical), int(not encoding.numbers))
        self.numbers = []
        for place, index in enumerate(encoding.numbers):
            values, present = self._number(rows, place)
            self.numbers.append(NumberBins.of(encoding.columns[index], values[present].numpy(), most))
        missing = [int(indicator >= 0) for indicator in self.indicators]
        binned = [number.bins + 2 + extra for number, extra in zip(self.numbers, missing, strict=True)]
        self.counts = (*encoding.counts[: self.categories], *binned)

    def codes(self, rows: Tensor) -> Tensor:
        """Rows -> codes, int64 (B, N)."""
        binned = [number.codes(*self._number(rows, place)) for place, number in enumerate(self.numbers)]
        return torch.cat([rows[:, : self.categories].long(), *[code[:, None] for code in binned]], 1)

    def log_spread(self, rows: Tensor) -> Tensor:
        """Sum over the numbers of log p(v | bin of v), (B)."""
        parts = [number.log_spread(*self._number(rows, place)) for place, number in enumerate(self.numbers)]
        return torch.stack([rows.new_zeros(len(rows)), *parts]).sum(0)

    def _number(self, rows: Tensor, place: int) -> tuple[Tensor, Tensor]:
        """A number's values and whether they are there, (B) each."""
        indicator = self.indicators[place]
        present = torch.ones(len(rows), dtype=torch.bool) if indicator < 0 else rows[:, indicator] == 1
        return rows[:, self.first + place].double(), present
