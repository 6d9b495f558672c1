"""Real rows beside sampled ones: each column on its own, and how much columns tell about each other.

A model that is right still draws other rows than those of the table. How far apart two halves of the table are says how
much of a difference is that.
"""

from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from tessella.baselines.trees import mutual_information
from tessella.data.tables.encoding import Encoding
from tessella.estimators.codes import Codes, number_distributions
from tessella.estimators.texts import text

CATEGORIES = 12  # the rest is "other"
BARS = 24  # of a number's histogram
TRIMMED = 0.005  # of the numbers, at either end, lie in the outermost bars whatever they are
QUANTILES = 8  # of a number, where associations are measured
ASSOCIATED = 30  # columns in the picture of associations


class Marginal(TypedDict):
    """Shares of a column's values; `ends` are the least and the largest number of a histogram, none for categories."""

    name: str
    kind: str
    labels: list[str]
    ends: list[str]
    real: list[float]
    sampled: list[float]
    difference: float
    """Half the sum of the absolute differences: the share of rows one would have to change."""
    difference_of_halves: float


class Association(TypedDict):
    """I(a; b) / sqrt(H(a) H(b)) of pairs of columns: 0 if neither tells anything of the other, 1 if they are one."""

    names: list[str]
    real: list[list[float]]
    sampled: list[list[float]]
    difference: float
    """Mean absolute difference over pairs."""
    difference_of_halves: float
    left_out: int
    """Columns that are not shown, since they have least to do with the others."""


class View:
    """A column as few codes: its most frequent categories and the rest, or a histogram's bars and the missing.

    Args:
        encoding: of the rows.
        column: its place in the table; it has at least two values.
        rows: whose frequencies and quantiles decide.
    """

    def __init__(self, encoding: Encoding, column: int, rows: Tensor):
        self.encoding, self.column, self.spec = encoding, column, encoding.columns[column]
        self.labels: list[str] = []
        self.ends: list[str] = []
        if self.spec.number:
            self._histogram(rows)
        else:
            self._categories(rows)

    def shares(self, rows: Tensor) -> Tensor:
        """The share of rows with each code, (codes)."""
        codes = self._bars(rows) if self.spec.number else self.place[self._values(rows).long()]
        return torch.bincount(codes, minlength=len(self.labels)).double() / len(rows)

    def _categories(self, rows: Tensor) -> None:
        names = self.spec.categories
        frequency = torch.bincount(self._values(rows).long(), minlength=len(names))
        kept = frequency.argsort(descending=True, stable=True)[:CATEGORIES]
        kept = kept if self.spec.kind == "categorical" else kept.sort().values
        self.place = torch.full((len(names),), len(kept))
        self.place[kept] = torch.arange(len(kept))
        self.labels = [text(names[code]) for code in kept.tolist()]
        if len(names) > len(kept):
            self.labels.append(f"{len(names) - len(kept):,} others")

    def _histogram(self, rows: Tensor) -> None:
        values = self._values(rows).numpy()
        values = values[~np.isnan(values)]
        low, high = (float(np.quantile(values, p)) for p in (TRIMMED, 1 - TRIMMED)) if len(values) else (0.0, 0.0)
        if low == high:
            low, high = self.spec.low, self.spec.high
        discrete = self.spec.discrete
        if discrete:  # bars of equally many integers
            low, span = np.floor(low), int(np.floor(high) - np.floor(low)) + 1
            least = -(-span // BARS)
            step = min(range(least, 2 * least), key=lambda step: -span % step)  # with little room left at the end
            self.edges = low + step * torch.arange(-(-span // step) + 1, dtype=torch.float64)
        else:
            self.edges = torch.linspace(low, high, BARS + 1, dtype=torch.float64)
        ends = np.array([float(self.edges[0]), float(self.edges[-1]) - discrete])
        self.ends = [text(value) for value in self.spec.decode(ends)]
        self.labels = [""] * (len(self.edges) - 1) + ["missing"] * self.spec.missing

    def _bars(self, rows: Tensor) -> Tensor:
        values = self._values(rows)
        bars = len(self.edges) - 1
        codes = (torch.searchsorted(self.edges, values, right=True) - 1).clamp(0, bars - 1)
        return torch.where(values.isnan(), bars, codes)

    def _values(self, rows: Tensor) -> Tensor:
        """The column's codes, or numbers with NaN where missing, (B)."""
        return torch.from_numpy(np.ascontiguousarray(self.encoding.values(self.column, rows.numpy())))


def marginals(encoding: Encoding, real: Tensor, sampled: Tensor) -> list[Marginal]:
    """Every column that has two values or more, on its own; rows are (B, G + R), the real ones in random order."""
    return [_marginal(encoding, i, real, sampled) for i in range(len(encoding.columns)) if encoding.tokens(i)]


def _marginal(encoding: Encoding, column: int, real: Tensor, sampled: Tensor) -> Marginal:
    view, (first, second, drawn) = View(encoding, column, real), _alike(real, sampled)
    shares = view.shares(first)
    return Marginal(
        name=view.spec.name,
        kind=view.spec.kind,
        labels=view.labels,
        ends=view.ends,
        real=view.shares(real).tolist(),
        sampled=view.shares(sampled).tolist(),
        difference=float((view.shares(drawn) - shares).abs().sum() / 2),
        difference_of_halves=float((view.shares(second) - shares).abs().sum() / 2),
    )


def associations(encoding: Encoding, real: Tensor, sampled: Tensor) -> Association:
    """How much each pair of columns has to do with each other, in both; numbers are cut at their quantiles."""
    columns = [*encoding.categorical, *encoding.numbers]
    coding = Codes(encoding, number_distributions(encoding, real, real), QUANTILES)
    first, second, drawn = (_normalised(coding, real, rows) for rows in _alike(real, sampled))
    strength = _off_diagonal(first).sum(0)
    strongest = strength.argsort(descending=True)[:ASSOCIATED].tolist()
    shown = sorted(strongest[: len(columns)], key=lambda place: columns[place])
    first, second, drawn = (matrix[shown][:, shown] for matrix in (first, second, drawn))
    return Association(
        names=[encoding.columns[columns[place]].name for place in shown],
        real=first.tolist(),
        sampled=drawn.tolist(),
        difference=_mean_difference(first, drawn),
        difference_of_halves=_mean_difference(first, second),
        left_out=len(columns) - len(shown),
    )


def _alike(real: Tensor, sampled: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Two halves of the real rows and as many sampled ones: what is measured grows with fewer rows."""
    count = max(1, min(len(real) // 2, len(sampled)))
    return real[:count], real[-count:], sampled[:count]


def _normalised(coding: Codes, real: Tensor, rows: Tensor) -> Tensor:
    """I(a; b) / sqrt(H(a) H(b)), (N, N); rare categories together are one."""
    codes, known = coding.codes(rows), coding.codes(real)
    for j, count in enumerate(coding.counts):
        rank = torch.bincount(known[:, j], minlength=count).argsort(descending=True, stable=True).argsort()
        codes[:, j] = rank[codes[:, j]].clamp_max(CATEGORIES)
    information = mutual_information(codes, [min(count, CATEGORIES + 1) for count in coding.counts])
    entropy = information.diag()
    return information / (entropy * entropy[:, None]).sqrt().clamp_min(1e-12)


def _off_diagonal(matrix: Tensor) -> Tensor:
    return matrix - matrix.diag().diag()


def _mean_difference(first: Tensor, second: Tensor) -> float:
    pairs = len(first) * (len(first) - 1)
    return float(_off_diagonal(first - second).abs().sum() / pairs) if pairs else 0.0
