"""Vectors for the parts of columns: one for each category, and lines through the groups of a number's parts."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.data.tables.bins import NumberDistribution


class PartGroups(nn.Module):
    """k -> (row g, place z): which row of a table a part has, and where in its group it lies, from -1 to 1.

    A category has a row of its own, and z = 0. Neighbouring parts of a number share one, so that what is learned about
    it is learned from enough rows; inside a group z is the rank of a value, by the mass of the column alone.

    Args:
        categories: parts of all categorical columns together.
        numbers: (parts, groups) of each number; the last parts, as many as `others` says, have groups of their own.
        others: of each number.
    """

    row: Tensor
    centre: Tensor
    radius: Tensor

    def __init__(self, categories: int, numbers: Sequence[tuple[int, int]], others: Sequence[int]):
        super().__init__()
        self.categories, self.numbers, self.others = categories, tuple(numbers), tuple(others)
        self.rows = categories + sum(groups for _, groups in numbers)
        parts = categories + sum(count for count, _ in numbers)
        self.register_buffer("row", torch.arange(parts).clamp_max(self.rows - 1))
        self.register_buffer("centre", torch.zeros(parts))
        self.register_buffer("radius", torch.zeros(parts))

    def check_tables(self) -> None:
        """Every part has a row of its own column."""
        part, row = self.categories, self.categories
        good = bool((self.row[:part] == torch.arange(part)).all())
        for parts, rows in self.numbers:
            own = self.row[part : part + parts]
            good = good and bool(((own >= row) & (own < row + rows)).all())
            part, row = part + parts, row + rows
        if not good:
            raise ValueError("row: got rows of other columns; expected those of each part's own column")

    @torch.no_grad()
    def arrange(self, distributions: Sequence[NumberDistribution], groups: Sequence[Tensor]) -> None:
        """Groups of the parts of every number, those that are no others, and their masses."""
        part, row = self.categories, self.categories
        for (parts, rows), others, distribution, group in zip(
            self.numbers, self.others, distributions, groups, strict=True
        ):
            own, alone = slice(part, part + len(group)), slice(part + len(group), part + parts)
            self.row[own] = row + group.to(self.row)
            self.row[alone] = torch.arange(row + rows - others, row + rows).to(self.row)
            centre, radius = _places(distribution, group)
            self.centre[own], self.radius[own] = centre.to(self.centre), radius.to(self.radius)
            part, row = part + parts, row + rows


def _places(distribution: NumberDistribution, group: Tensor) -> tuple[Tensor, Tensor]:
    """Middle of each part in its group and half its extent, 0 for an atom; the lower tail runs downwards, (parts)."""
    mass, order = distribution.log_mass.exp(), distribution.bins.places.argsort()
    total = torch.zeros(int(group.max()) + 1, dtype=mass.dtype).index_add(0, group, mass)[group]
    below = torch.zeros_like(mass)
    for one in group.unique().tolist():
        members = order[group[order] == one]
        below[members] = mass[members].cumsum(0) - mass[members]
    radius = mass / total
    centre = 2 * below / total + radius - 1
    radius[distribution.bins.bins + 2 :] = 0
    radius[0] = -radius[0]
    return centre, radius


class PartTable(nn.Module):
    """a_g + z b_g + z^2 c_g of every part: vectors that change steadily inside a group.

    As weights of logits they give the parts of a group probabilities like a bell's, whose middle may be any of them;
    without the square the likeliest part would always be the first or the last of its group.

    Args:
        groups: of the parts.
        width: of a vector.
        size: of the entries at the start; 0 for none.
    """

    bend: nn.Parameter | None

    def __init__(self, groups: PartGroups, width: int, size: float):
        super().__init__()
        self.base = nn.Parameter(size * torch.randn(groups.rows, width))
        inner = groups.rows - groups.categories
        self.register_parameter("bend", nn.Parameter(size * torch.randn(inner, 2 * width)) if inner else None)

    def forward(self, groups: PartGroups, part: Tensor, place: Tensor) -> Tensor:
        """Vectors of parts (*batch) at places z (*batch), 0 for categories: (*batch, width)."""
        row = groups.row[part]
        base = functional.embedding(row, self.base)
        if self.bend is None:
            return base
        slope, curve = functional.embedding((row - groups.categories).clamp_min(0), self.bend).chunk(2, -1)
        z = place[..., None].to(base.dtype)
        return torch.addcmul(base, z, torch.addcmul(slope, z, curve))

    def all(self, groups: PartGroups) -> Tensor:
        """Of every part, in its middle: (parts, width)."""
        if self.bend is None:
            return self.base
        categories, parts = groups.categories, len(groups.row)
        return torch.cat([self.base[:categories], self.some(groups, slice(categories, parts))])

    def some(self, groups: PartGroups, own: slice) -> Tensor:
        """Of all parts of some columns, either of categories or of numbers."""
        if own.stop <= groups.categories:
            return self.base[own]
        every = torch.arange(own.start, own.stop, device=self.base.device)
        vectors: Tensor = self(groups, every, groups.centre[own])
        return vectors
