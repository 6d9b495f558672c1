"""Rows of a mixed table as rows of categories, with what that leaves out: an exact likelihood for any discrete model.

log p(row) = log P(codes) + sum_numbers [ log p(v) - log P(code of v) ], p and P on the right those of the column alone
"""

from collections.abc import Sequence
from math import ceil

import torch
from torch import Tensor

from tessella.estimators.bins import NumberLaw
from tessella.estimators.encoding import Encoding


def number_laws(encoding: Encoding, train: Tensor, validation: Tensor) -> list[NumberLaw]:
    """The law of every column of numbers on its own, with settings that the validation rows like best."""
    return [
        NumberLaw.of(encoding.columns[i], _values(encoding, i, train), _values(encoding, i, validation))
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

    def __init__(self, encoding: Encoding, laws: Sequence[NumberLaw], most: int | None = None):
        self.encoding, self.laws = encoding, laws
        # A table of single values has one token that says nothing, and it must have a variable.
        self.categories = max(len(encoding.categorical), int(not encoding.numbers))
        self.groups = [torch.arange(law.bins.parts) if most is None else _grouped(law, most) for law in laws]
        self.counts = (*encoding.counts[: self.categories], *(int(group.max()) + 1 for group in self.groups))

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


def _grouped(law: NumberLaw, most: int) -> Tensor:
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
