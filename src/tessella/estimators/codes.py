"""Rows of a mixed table as rows of categories, with what that leaves out: an exact likelihood for any discrete model.

log p(row) = log P(codes) + sum_numbers [ log p(v) - log P(code of v) ], p and P on the right those of the column alone
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Self

import torch
from torch import Tensor

from tessella.data.tables.encoding import Encoding
from tessella.estimators.bins import NumberBins, NumberDistribution

_NUMBERS = ("edges", "atoms", "log_mass")


def number_distributions(encoding: Encoding, train: Tensor, validation: Tensor) -> list[NumberDistribution]:
    """The law of every column of numbers on its own, with settings that the validation rows like best."""
    return [
        NumberDistribution.of(encoding.columns[i], _values(encoding, i, train), _values(encoding, i, validation))
        for i in encoding.numbers
    ]


def _values(encoding: Encoding, column: int, rows: Tensor) -> Tensor:
    """A column's numbers, NaN where missing, (B)."""
    return torch.from_numpy(encoding.values(column, rows.double().cpu().numpy())).contiguous()


class Codes:
    """Rows (B, G + R) -> codes (B, N): the categorical columns as they are, then for every number a group of parts.

    A group is neighbouring bins and rare atoms, a frequent atom, or missing. Inside it, numbers are as they are in the
    column alone.

    Args:
        encoding: of the rows.
        laws: of its numbers.
        most: about so many groups for each number; None: every part of the law is one.
    """

    def __init__(self, encoding: Encoding, laws: Sequence[NumberDistribution], most: int | None = None):
        self.encoding, self.laws = encoding, laws
        # A table of single values has one token that says nothing, and it must have a variable.
        self.categories = max(len(encoding.categorical), int(not encoding.numbers))
        every = [torch.arange(law.bins.parts) if most is None else _grouped(law, most) for law in laws]
        self._group(every)

    def _group(self, groups: list[Tensor]) -> None:
        """The group of each part of every law."""
        self.groups, encoding = groups, self.encoding
        self.counts = (*encoding.counts[: self.categories], *(int(group.max()) + 1 for group in self.groups))

    def to_json(self) -> list[dict[str, Any]]:
        """What, besides the encoding, makes them, in JSON's types."""
        return [
            {
                "edges": law.bins.edges.tolist(),
                "atoms": law.bins.atoms.tolist(),
                "log_mass": law.log_mass.tolist(),
                "group": group.tolist(),
            }
            for law, group in zip(self.laws, self.groups, strict=True)
        ]

    @classmethod
    def from_json(cls, encoding: Encoding, said: Sequence[Mapping[str, Any]]) -> Self:
        """The codes that `to_json` wrote."""
        laws = []
        for index, law in zip(encoding.numbers, said, strict=True):
            column = encoding.columns[index]
            edges, atoms, log_mass = (torch.tensor(law[key], dtype=torch.float64) for key in _NUMBERS)
            laws.append(NumberDistribution(NumberBins(edges, atoms, column.discrete, column.missing), log_mass))
        codes = cls(encoding, laws)
        codes._group([torch.tensor(law["group"], dtype=torch.int64) for law in said])
        return codes

    def variable(self, column: int) -> int:
        """Which of the N codes is that of a column, which has more than one value."""
        if column in self.encoding.categorical:
            return self.encoding.categorical.index(column)
        return self.categories + self.encoding.numbers.index(column)

    def codes(self, rows: Tensor) -> Tensor:
        """Rows -> codes, int64 (B, N)."""
        numbers = zip(self.groups, self.laws, self.encoding.numbers, strict=True)
        found = [group[law.bins.codes(_values(self.encoding, i, rows))][:, None] for group, law, i in numbers]
        return torch.cat([rows[:, : self.categories].long(), *found], 1)

    def log_spread(self, rows: Tensor) -> Tensor:
        """Sum over the numbers of log p(v | code of v), (B)."""
        total = torch.zeros(len(rows), dtype=torch.float64)
        for group, law, i in zip(self.groups, self.laws, self.encoding.numbers, strict=True):
            values = _values(self.encoding, i, rows)
            mass = torch.zeros(int(group.max()) + 1, dtype=torch.float64).index_add(0, group, law.log_mass.exp())
            total += law.log_prob(values) - mass.log()[group[law.bins.codes(values)]]
        return total

    def draw(self, codes: Tensor) -> Tensor:
        """Codes (B, N) -> rows (B, G + R), the numbers drawn from their groups."""
        columns = torch.zeros(len(self.encoding.columns), len(codes), dtype=torch.float64)
        if self.encoding.categorical:
            columns[self.encoding.categorical] = codes[:, : self.categories].double().T
        for j, (group, law, i) in enumerate(zip(self.groups, self.laws, self.encoding.numbers, strict=True)):
            code = codes[:, self.categories + j]
            part = torch.empty_like(code)
            for one in code.unique().tolist():
                inside, here = (group == one).nonzero().flatten(), code == one
                mass = law.log_mass[inside].exp()
                part[here] = inside[torch.multinomial(mass, int(here.sum()), replacement=True)]
            columns[i] = law.bins.draw(part)
        return self.encoding.assemble(list(columns.numpy()))


def _grouped(law: NumberDistribution, most: int) -> Tensor:
    """The group of each part: frequent atoms and missing alone, the others in order, of about equal mass each."""
    mass, places = law.log_mass.exp(), law.bins.places
    parts = torch.arange(len(mass))
    alone = ((parts > law.bins.bins + 1) & (mass >= 1 / most)) | places.isnan()
    order = parts[~alone][places[~alone].argsort()]
    here = mass[order]
    share = (here.cumsum(0) - here / 2) / here.sum()
    group = torch.empty_like(parts)
    group[order] = (share * max(1, ceil(most * float(here.sum())))).long()
    group[alone] = most + parts[alone]
    return group.unique(return_inverse=True)[1]
