"""A column of numbers on its own: atoms, bins and tails, as many as validation rows like.

log p(v) = log P(part of v) + log p(v | part)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
import torch
from torch import Tensor

from tessella.data.tables.columns import Column

NARROWEST = 1e-3  # of the median bin; two numbers that differ by rounding do not make a bin of enormous density
FEWEST = 8  # training rows in the bins of the tails
BINS = (4, 8, 16, 32, 64, 128, 256)
SHARES = (1.0, 0.05, 0.01, 0.002, 0.0005)  # of the rows, from which on a value of a grid is an atom; 1: none is
SMOOTHINGS = (0.02, 0.1, 0.5, 2.0)


@dataclass(frozen=True)
class NumberBins:
    """p(v | part) = 1 for an atom, 1 / width between two edges, L / (L + d)^2 at distance d beyond them, L their span.

    On a grid, numbers are integers, and those that are no atoms are closed up, v' = v - #{atoms < v}, before they are
    binned: width is the number of integers in a bin, and beyond the edges the mass is that of [d, d + 1). So the parts
    have total mass 1 each, and every finite number has a positive likelihood.

    The parts: below, the bins, above, the atoms, missing if it may be. A missing number is NaN.

    Args:
        edges: of half-open bins, rising, (bins + 1); integers on a grid.
        atoms: rising, (A).
        whole: it is on a grid.
        missing: numbers may be missing.
    """

    edges: Tensor
    atoms: Tensor
    whole: bool
    missing: bool

    @classmethod
    def of(cls, column: Column, values: np.ndarray, most: int, atoms: np.ndarray) -> "NumberBins":
        """About so many bins, at the quantiles of a column's training values that are there and no atoms."""
        rest = values[~np.isin(values, atoms)]
        rest = rest - np.searchsorted(atoms, rest) if column.discrete else rest
        edges = _edges(rest, most, column)
        return cls(torch.from_numpy(edges), torch.from_numpy(atoms), column.discrete, column.missing)

    @property
    def bins(self) -> int:
        """Bins between the edges."""
        return len(self.edges) - 1

    @property
    def parts(self) -> int:
        """Number of parts."""
        return self.bins + 2 + len(self.atoms) + self.missing

    @property
    def places(self) -> Tensor:
        """Where on the line each part lies, (parts); NaN for missing."""
        middles = self._opened((self.edges[1:] + self.edges[:-1]) / 2)
        ends, nowhere = torch.tensor([-torch.inf, torch.inf]), [torch.nan] * self.missing
        return torch.cat([ends[:1], middles, ends[1:], self.atoms, torch.tensor(nowhere)])

    def codes(self, values: Tensor) -> Tensor:
        """The part of every value, (B)."""
        code = torch.searchsorted(self.edges, self._closed(values), right=True)
        if len(self.atoms):
            place = torch.searchsorted(self.atoms, values).clamp_max(len(self.atoms) - 1)
            code = torch.where(self.atoms[place] == values, self.bins + 2 + place, code)
        return torch.where(values.isnan(), self.parts - 1, code)

    def log_spread(self, values: Tensor) -> Tensor:
        """log p(v | part of v), 0 for atoms and where it is missing, (B)."""
        code, rest, span = self.codes(values), self._closed(values), self.span
        width = self.edges.diff()[(code - 1).clamp(0, self.bins - 1)]
        under, over = (self.edges[0] - rest - float(self.whole)).clamp_min(0), (rest - self.edges[-1]).clamp_min(0)
        reach = span + torch.maximum(under, over)
        beyond = span.log() - reach.log() - (reach + float(self.whole)).log()
        tail = (code == 0) | (code == self.bins + 1)
        return torch.where(code > self.bins + 1, 0, torch.where(tail, beyond, -width.log()))

    @property
    def mean_log_spread(self) -> Tensor:
        """E[log p(v | part)] of every part, (parts); on a grid that of the tails is the continuum's."""
        tail, nothing = -self.span.log()[None] - 2, self.edges.new_zeros(len(self.atoms) + self.missing)
        return torch.cat([tail, -self.edges.diff().log(), tail, nothing])

    @property
    def dense(self) -> Tensor:
        """Whether each part has a density, (parts): bins and tails, unless they are on a grid."""
        return (torch.arange(self.parts, device=self.edges.device) < self.bins + 2) & (not self.whole)

    def draw(self, codes: Tensor) -> Tensor:
        """A value of each of these parts, (B)."""
        return self.at(codes, torch.rand(len(codes), dtype=torch.float64))

    def at(self, codes: Tensor, t: Tensor) -> Tensor:
        """The value at t of each of these parts, (B): evenly in a bin, d = L t / (1 - t) away in a tail."""
        bin_ = (codes - 1).clamp(0, self.bins - 1)
        far = self.span * t / (1 - t)  # P(distance > d) = L / (L + d)
        rest = self.edges[bin_] + t * self.edges.diff()[bin_]
        rest = torch.where(codes == 0, self.edges[0] - far, rest)
        rest = torch.where(codes == self.bins + 1, self.edges[-1] + far, rest)
        values = self._opened(rest.floor() if self.whole else rest)
        atoms = torch.cat([self.atoms, self.atoms.new_tensor([torch.nan])])
        return torch.where(codes > self.bins + 1, atoms[(codes - self.bins - 2).clamp_min(0)], values)

    def ranges(self, low: Tensor, high: Tensor) -> Tensor:
        """Which t of each part are the numbers from low to high: from ... to ..., (B, parts, 2); 0 to 0 for none.

        An atom between them has all of its t, missing has none.

        Args:
            low, high: both included, (B); they may be infinite.
        """
        ends = (low.ceil(), high.floor() + 1) if self.whole else (low, high)
        first, end = (self._closed(x.contiguous())[:, None] for x in ends)
        bins = [((x - self.edges[:-1]) / self.edges.diff()).clamp(0, 1) for x in (first, end)]
        below = [self._tail(self.edges[:1] - x) for x in (end, first)]
        above = [self._tail(x - self.edges[-1:]) for x in (first, end)]
        atoms = ((self.atoms >= low[:, None]) & (self.atoms <= high[:, None])).to(self.edges)
        none = [self.edges.new_zeros(len(low), int(self.missing))]
        from_ = torch.cat([below[0], bins[0], above[0], torch.zeros_like(atoms), *none], 1)
        to = torch.cat([below[1], bins[1], above[1], atoms, *none], 1)
        return torch.stack([from_, torch.maximum(from_, to)], -1)

    @property
    def span(self) -> Tensor:
        """L, of all bins together."""
        return self.edges[-1] - self.edges[0]

    def _tail(self, distance: Tensor) -> Tensor:
        """t = d / (L + d), 1 at infinity."""
        away = distance.clamp_min(0)
        return torch.where(away.isinf(), 1, away / (self.span + away.nan_to_num(posinf=0)))

    def _closed(self, values: Tensor) -> Tensor:
        """Integers that are no atoms, without the gaps that atoms leave."""
        return values - torch.searchsorted(self.atoms, values) if self.whole else values

    def _opened(self, rest: Tensor) -> Tensor:
        """The inverse of `_closed`."""
        if not self.whole:
            return rest
        return rest + torch.searchsorted(self.atoms - torch.arange(len(self.atoms)), rest, right=True)


def _edges(values: np.ndarray, most: int, column: Column) -> np.ndarray:
    """At quantiles of the values, evenly and then halving towards either end, where densities are steep."""
    if len(values) == 0 or (values.min() == values.max() and not column.discrete):
        first = float(values[0]) if len(values) else column.low
        return np.array([first, first + column.high - column.low])
    halvings = max(0, int(log2(max(1.0, len(values) / (most * FEWEST)))))
    tail = 0.5 ** np.arange(halvings, 0, -1) / most
    levels = np.concatenate([[0], tail, np.arange(1, most) / most, 1 - tail[::-1]])
    inner = np.quantile(values, levels)
    end = values.max() + 1 if column.discrete else np.nextafter(values.max(), np.inf)
    return _apart(np.append(np.floor(inner) if column.discrete else inner, end))


def _apart(edges: np.ndarray) -> np.ndarray:
    """The edges that are not too near each other, the first and the last always among them."""
    edges = np.unique(edges)
    least = NARROWEST * np.median(np.diff(edges))
    kept = [edges[0]]
    for edge in edges[1:-1]:
        if min(edge - kept[-1], edges[-1] - edge) >= least:
            kept.append(edge)
    return np.array([*kept, edges[-1]])


@dataclass(frozen=True)
class NumberDistribution:
    """log p(v) = log P(part of v) + log p(v | part): one column of numbers, v NaN where it is missing.

    Args:
        bins: the parts.
        log_mass: log P of each, (parts).
    """

    bins: NumberBins
    log_mass: Tensor

    @classmethod
    def of(
        cls, column: Column, train: Tensor, validation: Tensor, choices: Sequence[int] = BINS
    ) -> "NumberDistribution":
        """Of the training values, with the atoms, bins and smoothing that the validation values like best.

        Args:
            column: of the values.
            train, validation: values, NaN where missing, (B) each.
            choices: numbers of bins to choose from.
        """
        (learned, often), (watched, times) = (_different(values) for values in (train, validation))
        present = train[~train.isnan()].numpy()
        best, highest = None, -torch.inf
        for atoms in _atom_sets(column, present):
            for most in choices:
                bins = NumberBins.of(column, present, most, atoms)
                frequency, seen = (_frequencies(bins, *pair) for pair in ((learned, often), (watched, times)))
                tried = cls(bins, smoothed(frequency, seen))
                value = float(times @ tried.log_prob(watched))
                if best is None or value > highest:
                    best, highest = tried, value
        assert best is not None
        return best

    def log_prob(self, values: Tensor) -> Tensor:
        """Exact log-likelihood of values, a mass or a density as the column has it: (B)."""
        return self.log_mass[self.bins.codes(values)] + self.bins.log_spread(values)

    def grouped(self, most: int) -> Tensor:
        """A group for each part, (parts): frequent atoms and missing alone, about `most` of the others, alike in mass.

        What a joint model learns about a group of parts it learns from enough rows.
        """
        mass, places = self.log_mass.exp(), self.bins.places
        parts = torch.arange(len(mass))
        alone = ((parts > self.bins.bins + 1) & (mass >= 1 / most)) | places.isnan()
        order = parts[~alone][places[~alone].argsort()]
        here = mass[order]
        share = (here.cumsum(0) - here / 2) / here.sum()
        group = torch.empty_like(parts)
        group[order] = (share * max(1, ceil(most * float(here.sum())))).long()
        group[alone] = most + parts[alone]
        _, renumbered = group.unique(return_inverse=True)
        assert isinstance(renumbered, Tensor)
        return renumbered


def smoothed(frequency: Tensor, seen: Tensor) -> Tensor:
    """log (n_k + s) / (n + s K), with the s under which the numbers of validation rows `seen` are likeliest: (K)."""
    tables = [(frequency + s).log() - (frequency.sum() + s * len(frequency)).log() for s in SMOOTHINGS]
    return max(tables, key=lambda table: float(seen @ table))


def _atom_sets(column: Column, values: np.ndarray) -> Iterator[np.ndarray]:
    """The atoms that a continuous column has; on a grid, values that come more and more seldom."""
    if not column.discrete:
        yield np.array(column.atoms)
        return
    different, frequency = np.unique(values, return_counts=True)
    sizes = set()
    for share in SHARES:
        atoms = different[(frequency > share * len(values)) & (frequency > 1)]
        if len(atoms) not in sizes:
            sizes.add(len(atoms))
            yield atoms


def _different(values: Tensor) -> tuple[Tensor, Tensor]:
    """The different values, and how often each comes."""
    different, frequency = np.unique(values.numpy(), return_counts=True)
    return torch.from_numpy(different), torch.from_numpy(frequency).double()


def _frequencies(bins: NumberBins, values: Tensor, often: Tensor) -> Tensor:
    """How often each part comes, (parts)."""
    return torch.bincount(bins.codes(values), weights=often, minlength=bins.parts)
