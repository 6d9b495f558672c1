"""Rows of a mixed table as rows of categories, with what that leaves out: an exact likelihood for any discrete model.

log p(row) = log P(codes) + sum_numbers [ log p(v) - log P(code of v) ], p and P on the right those of the column alone
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from tessella.contracts import Batch
from tessella.data import Encoding
from tessella.data.tables.bins import NumberBins, NumberDistribution

_NUMBERS = ("edges", "atoms", "log_mass")
MASS_ERROR = 1e-3  # of a saved distribution


def number_distributions(encoding: Encoding, train: Batch, validation: Batch) -> list[NumberDistribution]:
    """The distribution of every column of numbers on its own, with settings that the validation rows like best."""
    pairs = zip(_values(encoding, train), _values(encoding, validation), strict=True)
    return [NumberDistribution.of(encoding.columns[i], *pair) for i, pair in zip(encoding.numbers, pairs, strict=True)]


def _values(encoding: Encoding, batch: Batch) -> Iterator[Tensor]:
    """For each column of numbers its values, NaN where missing, (B) each."""
    rows = encoding.join(*batch).cpu().numpy()
    return (torch.from_numpy(encoding.values(i, rows)).contiguous() for i in encoding.numbers)


class Codes:
    """Rows of an `Encoding` -> codes (B, N): categorical columns as they are, then for every number a group of parts.

    A group is neighbouring bins and rare atoms, a frequent atom, or missing. Inside it, numbers are as they are in the
    column alone.

    Args:
        encoding: of the rows.
        distributions: of its numbers.
        most: about so many groups for each number; None: every part of the distribution is one.
    """

    def __init__(self, encoding: Encoding, distributions: Sequence[NumberDistribution], most: int | None = None):
        self.encoding, self.distributions = encoding, distributions
        # A table of single values has one token that says nothing, and it must have a variable.
        self.categories = max(len(encoding.categorical), int(not encoding.numbers))
        self._group([torch.arange(d.bins.parts) if most is None else d.grouped(most) for d in distributions])

    def _group(self, groups: list[Tensor]) -> None:
        """The group of each part of every distribution."""
        self.groups = groups
        self.counts = (*self.encoding.counts[: self.categories], *(int(group.max()) + 1 for group in groups))

    def to_json(self) -> list[dict[str, Any]]:
        """What, besides the encoding, makes them, in JSON's types."""
        return [
            {
                "edges": distribution.bins.edges.tolist(),
                "atoms": distribution.bins.atoms.tolist(),
                "log_mass": distribution.log_mass.tolist(),
                "group": group.tolist(),
            }
            for distribution, group in zip(self.distributions, self.groups, strict=True)
        ]

    @classmethod
    def from_json(cls, encoding: Encoding, said: Sequence[Mapping[str, Any]]) -> Self:
        """The codes that `to_json` wrote, or a ValueError."""
        distributions = []
        for index, one in zip(encoding.numbers, said, strict=True):
            column = encoding.columns[index]
            edges, atoms, log_mass = (torch.tensor(one[key], dtype=torch.float64) for key in _NUMBERS)
            bins = NumberBins(edges, atoms, column.discrete, column.missing)
            distributions.append(NumberDistribution(bins, log_mass))
        codes = cls(encoding, distributions)
        groups = [torch.tensor(one["group"], dtype=torch.int64) for one in said]
        for index, distribution, group in zip(encoding.numbers, distributions, groups, strict=True):
            _check(encoding.columns[index].name, distribution, group)
        codes._group(groups)
        return codes

    def variable(self, column: int) -> int:
        """Which of the N codes is that of a column, which has more than one value."""
        if column in self.encoding.categorical:
            return self.encoding.categorical.index(column)
        return self.categories + self.encoding.numbers.index(column)

    def codes(self, *batch: Tensor) -> Tensor:
        """A batch of the encoding -> codes, int64 (B, N)."""
        numbers = zip(self.groups, self.distributions, _values(self.encoding, batch), strict=True)
        found = [group[distribution.bins.codes(values)][:, None] for group, distribution, values in numbers]
        return torch.cat([batch[0][:, : self.categories].cpu(), *found], 1)

    def log_spread(self, *batch: Tensor) -> Tensor:
        """Sum over the numbers of log p(v | code of v), (B)."""
        total = torch.zeros(len(batch[0]), dtype=torch.float64)
        numbers = zip(self.groups, self.distributions, _values(self.encoding, batch), strict=True)
        for group, distribution, values in numbers:
            mass = torch.zeros(int(group.max()) + 1, dtype=torch.float64)
            mass.index_add_(0, group, distribution.log_mass.exp())
            total += distribution.log_prob(values) - mass.log()[group[distribution.bins.codes(values)]]
        return total

    def draw(self, codes: Tensor) -> Batch:
        """Codes (B, N) -> a batch of the encoding, the numbers drawn from their groups."""
        columns = torch.zeros(len(self.encoding.columns), len(codes), dtype=torch.float64)
        if self.encoding.categorical:
            columns[self.encoding.categorical] = codes[:, : self.categories].double().T
        numbers = zip(self.groups, self.distributions, self.encoding.numbers, strict=True)
        for code, (group, distribution, i) in zip(codes.T[self.categories :], numbers, strict=True):
            part = torch.empty_like(code)
            for one in code.unique().tolist():
                inside, here = (group == one).nonzero().flatten(), code == one
                mass = distribution.log_mass[inside].exp()
                part[here] = inside[torch.multinomial(mass, int(here.sum()), replacement=True)]
            columns[i] = distribution.bins.draw(part)
        return self.encoding.split(self.encoding.assemble(list(columns.numpy())))


def _check(name: str, distribution: NumberDistribution, group: Tensor) -> None:
    """Edges and atoms rise, masses are those of all parts, and every group has some of them."""
    bins, mass = distribution.bins, distribution.log_mass.exp()
    for what, numbers in {"edges": bins.edges, "atoms": bins.atoms}.items():
        if not (numbers.isfinite().all() and (numbers.diff() > 0).all()) or (what == "edges" and len(numbers) < 2):
            raise ValueError(f"codes of {name!r}: got the {what} {numbers.tolist()!s:.80}; expected rising numbers")
    if mass.shape != (bins.parts,) or not abs(float(mass.sum()) - 1) < MASS_ERROR:
        raise ValueError(f"codes of {name!r}: got {len(mass)} masses; expected {bins.parts}, which sum to 1")
    different = group.unique()
    if group.shape != (bins.parts,) or not torch.equal(different, torch.arange(len(different))):
        raise ValueError(f"codes of {name!r}: got the groups {group.tolist()!s:.80}; expected one for each part")
