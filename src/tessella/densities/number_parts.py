"""Columns of numbers as parts of the line: bins and tails with densities inside, atoms, and what is no number."""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.data.tables.bins import NumberBins
from tessella.densities import intervals
from tessella.densities.intervals import Places

QUARTER = 0.25  # sums of quarters of finite numbers are finite


class Sizes(NamedTuple):
    """How many parts of each kind a column has, besides its two tails."""

    bins: int
    atoms: int
    others: int
    """What may be said instead of a number: missing, or one of the atoms that the table's encoding knows of."""

    @property
    def parts(self) -> int:
        """All of them."""
        return self.bins + 2 + self.atoms + self.others


class LocatedNumbers(NamedTuple):
    """Numbers by their parts, (B, n) each, in double precision."""

    part: Tensor
    inside: Tensor
    """Whether the part is an interval, with a density inside."""
    t: Tensor
    """Where in it; anywhere for other parts."""
    log_even: Tensor
    """log dt on a grid, else log dt/dv."""
    grid: Tensor

    @property
    def position(self) -> Tensor:
        """Where in its interval the middle of a number is, from -1 to 1; 0 for other parts."""
        middle = self.t + torch.where(self.grid, 0.5 * self.log_even.exp(), 0)
        return torch.where(self.inside, 2 * middle - 1, 0)


class PlacedNumbers(NamedTuple):
    """The same, as the density inside wants them."""

    part: Tensor
    inside: Tensor
    where: Places
    """Where in it; anywhere for other parts."""
    position: Tensor
    """See `LocatedNumbers`."""


class NumberParts(nn.Module):
    """v <-> (part, t): the parts of a column are its lower tail, bins, upper tail, atoms, and what is no number.

    In a bin t = (v - edge) / width; in a tail at distance d, t = d / (L + d), L the span of the bins, so that uniform t
    means the density L / (L + d)^2. On a grid, numbers are integers, and those that are no atoms are closed up,
    v' = v - #{atoms < v}, as in `NumberBins`. Everything is in double precision, the units of the table.

    Args:
        sizes: of each of the R columns.
        whole: whether each is on a grid.
    """

    edges: Tensor
    atoms: Tensor
    bins: Tensor
    other: Tensor
    whole: Tensor

    def __init__(self, sizes: Sequence[Sizes], whole: Sequence[bool]):
        super().__init__()
        self.sizes, self.grid = tuple(sizes), tuple(whole)
        most = max(size.bins for size in sizes) + 1, max(1, *(size.atoms for size in sizes))
        edges, atoms = (torch.full((len(sizes), n), torch.inf, dtype=torch.float64) for n in most)
        for row, size in zip(edges, sizes, strict=True):
            row[: size.bins + 1] = torch.linspace(0, size.bins, size.bins + 1)
        self.register_buffer("edges", edges)  # (R, bins + 1), infinity behind those of a column
        self.register_buffer("atoms", atoms)
        self.register_buffer("bins", torch.tensor([size.bins for size in sizes]), persistent=False)
        self.register_buffer("other", torch.tensor([s.parts - s.others for s in sizes]), persistent=False)
        self.register_buffer("whole", torch.tensor(list(whole)), persistent=False)

    def arrange(self, found: Sequence[NumberBins]) -> None:
        """Bins and atoms of the columns, as many as `sizes` says."""
        for j, column in enumerate(found):
            self.edges[j, : len(column.edges)] = column.edges
            self.atoms[j, : len(column.atoms)] = column.atoms

    def check_tables(self) -> None:
        """Bins and atoms rise, and there are as many as `sizes` says."""
        for j, size in enumerate(self.sizes):
            for name, table, n in (("edges", self.edges, size.bins + 1), ("atoms", self.atoms, size.atoms)):
                own, behind = table[j, :n], table[j, n:]
                if not (own.isfinite().all() and (own.diff() > 0).all() and behind.isposinf().all()):
                    raise ValueError(f"{name}: got {table[j].tolist()!s:.80}; expected {n} rising numbers")

    def of(self, column: int) -> NumberBins:
        """The tails, bins and atoms of a column."""
        size = self.sizes[column]
        edges, atoms = self.edges[column, : size.bins + 1], self.atoms[column, : size.atoms]
        return NumberBins(edges, atoms, self.grid[column], missing=False)

    def forward(self, values: Tensor, state: Tensor, dtype: torch.dtype) -> PlacedNumbers:
        """Numbers of all columns, (B, R), and states, 1 where the number is there, to their parts."""
        found = self.locate(values, state)
        where = intervals.places(found.t, found.log_even, found.grid, dtype)
        return PlacedNumbers(found.part, found.inside, where, found.position.to(dtype))

    def locate(self, values: Tensor, state: Tensor, column: int | None = None) -> LocatedNumbers:
        """The parts of numbers of all columns or of one, (B, n), and states, and where they are inside."""
        own = slice(None) if column is None else slice(column, column + 1)
        edges, atoms, whole, bins, other = (
            table[own] for table in (self.edges, self.atoms, self.whole[:, None], self.bins[:, None], self.other)
        )
        there = state.mT == 1
        v = torch.where(there, values.mT, edges[:, :1]).contiguous()  # (n, B)
        below = torch.searchsorted(atoms, v)
        rest = torch.where(whole, v - below, v)
        nearest = below.clamp_max(atoms.shape[1] - 1)
        atom = there & (atoms.gather(1, nearest) == v)
        part = torch.searchsorted(edges, rest, right=True)
        t, log_even = _inside(rest, part, edges, bins, whole)
        part = torch.where(atom, bins + 2 + nearest, part)
        part = torch.where(there, part, other[:, None] + state.mT - (state.mT > 1).long())
        return LocatedNumbers(*(x.mT for x in (part, there & ~atom, t, log_even, whole.expand_as(t))))

    def wide(self, column: int) -> Tensor:
        """Whether each part of a column has more than one value, (parts): tails and bins do, unless of one integer."""
        size = self.sizes[column]
        widths = self.edges[column, : size.bins + 1].diff()
        inner = functional.pad(widths > float(self.grid[column]), (1, 1), value=True)
        return functional.pad(inner, (0, size.atoms + size.others))

    def at(self, column: int, part: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """Values at t of the tails and bins of a column, and where in these their middle is, from -1 to 1: (B) each.

        A value at distance d from the near end of its part is at t = d / width in a bin, and d / (L + d) in a tail.
        """
        edges, step = self.edges[column, : self.sizes[column].bins + 1], float(self.grid[column])
        span = edges[-1:] - edges[:1]
        start = torch.cat([edges[:1] - step, edges])[part]
        width = torch.cat([span, edges.diff(), span])[part]
        low = part == 0
        tail = low | (part == len(edges))
        d = width * torch.where(tail, t / (1 - t), t)
        d = d.floor() if step else d
        around = torch.stack([d, d + step])
        position = (around / torch.where(tail, width + around, width)).sum(0) - 1
        rest = torch.where(low, start - d, start + d)
        if step:  # open the gaps that atoms leave
            atoms = self.atoms[column]
            rest = rest + torch.searchsorted(atoms - torch.arange(len(atoms), device=atoms.device), rest, right=True)
        return rest, position

    def values(self, column: int) -> tuple[Tensor, Tensor]:
        """Of every part of a column its value, or its first, and what is said, 1 where a number is there: (parts)."""
        size = self.sizes[column]
        inner = torch.arange(size.bins + 2, device=self.edges.device)
        first, _ = self.at(column, inner, torch.zeros_like(inner, dtype=torch.float64))
        said = torch.arange(size.others, device=inner.device)
        said = torch.cat([torch.ones(size.parts - size.others).to(said), said + (said > 0)])
        return functional.pad(torch.cat([first, self.atoms[column, : size.atoms]]), (0, size.others)), said


def _inside(rest: Tensor, part: Tensor, edges: Tensor, bins: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
    """t of closed-up numbers (n, B) in their bin or tail, and log dt, or log dt/dv."""
    right = part.clamp(max=bins).clamp_min(1)
    left, end = edges.gather(1, right - 1), edges.gather(1, right)
    first, last = QUARTER * edges[:, :1], QUARTER * edges.gather(1, bins)
    rest4, step = QUARTER * rest, QUARTER * whole
    away = torch.where(part == 0, first - rest4 - step, rest4 - last).clamp_min(0)
    span = last - first
    reach = span + away
    tail = (part == 0) | (part == bins + 1)
    beyond = log(QUARTER) + span.log() - reach.log() - (reach + step).log()
    width = end - left
    return torch.where(tail, away / reach, (rest - left) / width), torch.where(tail, beyond, -width.log())
