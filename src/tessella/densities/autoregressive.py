"""Rows of categories and numbers, one column after another in any order: exact likelihoods."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella import checks
from tessella.contracts import Batch
from tessella.data.tables.shape import TableShape
from tessella.densities import intervals
from tessella.densities.number_parts import NumberParts, PlacedNumbers, Sizes
from tessella.nets import AnyOrder, RaggedHead

EMBEDDED = 0.1  # size of what the network is told about a value, at the start
JEFFREYS = 0.5  # rows that every part is given before counting


class PlacedRows(NamedTuple):
    """Rows as the density sees them."""

    part: Tensor
    """The part that each column is in, (B, N): its category, or the part of its number."""
    numbers: PlacedNumbers | None
    """Of the last columns."""


class Autoregressive(nn.Module):
    """p_s(x) = prod_t pi_k(x_s(<t)) p_in(x_s(t) | k, x_s(<t)),  k = the part that holds x_s(t), for every order s.

    Each conditional is a disjoint mixture: one part of the column, one component. A category is a part, and nothing
    has to be known inside; the parts of a number are `NumberParts`, and inside a bin or tail its density is that of
    `densities.intervals`. Likelihoods are masses in categories, integers and atoms, and densities in real numbers.

    The N columns are the table's categorical variables that are no indicators, then its numbers, each with what its
    indicator says: a missing number, or one of the encoding's atoms, is a part.

    Args:
        shape: of the table.
        sizes: (bins, atoms) of each of its numbers.
        width, layers, dropout, fast: of the network, see `AnyOrder`.

    >>> density = Autoregressive(TableShape((2, 3)), (), width=8, layers=1)
    >>> density(density.place(torch.tensor([[1, 2]])), torch.tensor([[1, 0]])).exp()
    tensor([[0.5000, 0.3333]], grad_fn=<ExpBackward0>)
    """

    categorical: Tensor
    indicator: Tensor
    offset: Tensor
    count: Tensor

    def __init__(
        self,
        shape: TableShape,
        sizes: Sequence[tuple[int, int]],
        width: int,
        layers: int,
        dropout: float = 0.0,
        fast: bool = False,
    ):
        super().__init__()
        if len(sizes) != shape.numbers:
            raise ValueError(f"sizes: got {len(sizes)}; expected {shape.numbers}, (bins, atoms) of each number")
        self.shape = shape
        others = [shape.counts[i] - 1 if i >= 0 else 0 for i in shape.indicators]
        parts = [Sizes(*size, other) for size, other in zip(sizes, others, strict=True)]
        self.numbers = NumberParts(parts, shape.whole) if parts else None
        self.variables = _categorical(shape)
        self.categories = len(self.variables)
        self.counts = (*(shape.counts[j] for j in self.variables), *(size.parts for size in parts))
        own = torch.tensor(self.counts)
        for name, buffer in {
            "categorical": torch.tensor(self.variables, dtype=torch.int64),
            "indicator": torch.tensor(shape.indicators, dtype=torch.int64),
            "count": torch.tensor(shape.counts),
            "offset": own.cumsum(0) - own,
        }.items():
            self.register_buffer(name, buffer, persistent=False)
        self.net = AnyOrder(len(self.counts), width, layers, dropout, fast)
        self.embed = nn.Parameter(EMBEDDED * torch.randn(sum(self.counts), width))
        self.head = RaggedHead(self.counts, width)
        self.inside = _Inside(sum(size.parts for size in parts), width) if parts else None

    @property
    def columns(self) -> int:
        """N."""
        return len(self.counts)

    def place(self, codes: Tensor, numbers: Tensor | None = None) -> PlacedRows:
        """A batch of the table, codes (B, G) and numbers (B, R), by its parts."""
        checks.indices("codes", codes, (len(codes), len(self.shape.counts)), self.count)
        if (numbers is None) != (self.numbers is None):
            expected = f"(B, {self.shape.numbers})" if self.shape.numbers else "none"
            raise ValueError(f"numbers: got {'none' if numbers is None else 'some'}; expected {expected}")
        codes = codes.long()
        categories = codes.index_select(1, self.categorical)
        if self.numbers is None or numbers is None:
            return PlacedRows(categories, None)
        checks.finite("numbers", numbers)
        placed = self.numbers(numbers.double(), self._states(codes), self.embed.dtype)
        return PlacedRows(torch.cat([categories, placed.part], 1), placed)

    def forward(self, rows: PlacedRows, order: Tensor | None = None) -> Tensor:
        """log p(x_j | those before j in the order) of every column, (B, N), in the table's order.

        Args:
            rows: by their parts.
            order: of the columns, one for each row, (B, N); None for the table's own.
        """
        given = torch.arange(self.columns, device=rows.part.device).expand_as(rows.part) if order is None else order
        states = self.net(self._told(rows, order), given)
        if order is not None:
            states = _back(states, order)
        log_prob: Tensor = self.head(states, rows.part)
        if self.inside is None or rows.numbers is None:
            return log_prob
        inner = self._log_inside(rows, states[:, self.categories :])
        return log_prob + functional.pad(inner, (self.categories, 0))

    def conditional(self, rows: PlacedRows, column: int, known: Sequence[int]) -> tuple[Tensor, Tensor]:
        """log P of every part of a column given the known ones, (B, K), and log p of the value that is there, (B)."""
        order = torch.tensor([*known, column], device=rows.part.device).expand(len(rows.part), -1)
        state = self.net(self._told(rows, order), order)[:, -1]
        table = self.head.log_table(column, state)
        log_prob = table.gather(1, rows.part[:, column, None])[:, 0]
        if column >= self.categories:
            log_prob = log_prob + self._log_inside(rows, state[:, None], column - self.categories)[:, 0]
        return table, log_prob

    def complete(self, batch: Batch, known: Sequence[int], drawn: Sequence[int]) -> Batch:
        """Rows whose known columns stay, and others are drawn given them, one after another as in `drawn`."""
        codes, numbers = (*(part.clone() for part in batch), None)[:2]
        assert codes is not None
        walk, kept = self.net.walk(len(codes)), set(known)
        for column in (*known, *drawn):
            state = walk.ask(column)
            if column not in kept:
                self._draw(column, state, codes, numbers)
            walk.tell(column, self._told_one(column, codes, numbers))
        return (codes,) if numbers is None else (codes, numbers)

    @torch.no_grad()
    def start(self, rows: PlacedRows) -> None:
        """Begin as independent columns, log P_k = log (n_k + 1/2) / (n + K / 2)."""
        n = torch.bincount((rows.part + self.offset).flatten(), minlength=len(self.embed)).double()
        count = torch.tensor(self.counts, device=n.device)
        total = (len(rows.part) + JEFFREYS * count.double()).repeat_interleave(count)
        self.head.bias.copy_((n + JEFFREYS).log() - total.log())

    def _told(self, rows: PlacedRows, order: Tensor | None) -> Tensor:
        """What the network is told about values: of all columns, or of those in an order (B, n): (B, n, width)."""
        flat = rows.part + self.offset
        flat = flat if order is None else flat.gather(1, order)
        told = functional.embedding(flat, self.embed)
        if self.inside is None or rows.numbers is None:
            return told
        position = functional.pad(rows.numbers.position, (self.categories, 0))
        position = position if order is None else position.gather(1, order)
        inner = (flat - self._inner_start).clamp_min(0)
        return told + position[..., None] * functional.embedding(inner, self.inside.slope)

    @property
    def _inner_start(self) -> int:
        """The first entry of a number in the flat tables."""
        return sum(self.counts[: self.categories])

    def _log_inside(self, rows: PlacedRows, states: Tensor, number: int | None = None) -> Tensor:
        """log p_in of all numbers or of one, from the states (B, n, width) of their columns: (B, n)."""
        assert self.inside is not None
        assert rows.numbers is not None
        own = slice(None) if number is None else slice(number, number + 1)
        flat = (rows.part + self.offset)[:, self.categories :][:, own] - self._inner_start
        where = intervals.Places(*(part[:, own] for part in rows.numbers.where))
        log_density = intervals.log_density(where, self.inside(flat, states))
        return torch.where(rows.numbers.inside[:, own], log_density, 0)

    def _draw(self, column: int, state: Tensor, codes: Tensor, numbers: Tensor | None) -> None:
        """Write a value of that column, whose state is (B, width), into every row."""
        part = torch.multinomial(self.head.log_table(column, state).exp(), 1)[:, 0]
        if column < self.categories:
            codes[:, self.variables[column]] = part
            return
        assert self.inside is not None
        assert self.numbers is not None
        assert numbers is not None
        number = column - self.categories
        flat = part + self.offset[column] - self._inner_start
        value, said = self.numbers.draw(number, part, self.inside(flat[:, None], state[:, None])[:, 0])
        numbers[:, number] = value.to(numbers.dtype)
        if self.shape.indicators[number] >= 0:
            codes[:, self.shape.indicators[number]] = said

    def _told_one(self, column: int, codes: Tensor, numbers: Tensor | None) -> Tensor:
        """`_told` of one column of a batch, (B, width)."""
        if self.inside is None or self.numbers is None or numbers is None or column < self.categories:
            return functional.embedding(codes[:, self.variables[column]] + self.offset[column], self.embed)
        number = column - self.categories
        own = slice(number, number + 1)
        placed = self.numbers(numbers[:, own].double(), self._states(codes)[:, own], self.embed.dtype, number)
        flat = placed.part[:, 0] + self.offset[column]
        slope = functional.embedding(flat - self._inner_start, self.inside.slope)
        told: Tensor = functional.embedding(flat, self.embed) + placed.position * slope
        return told

    def _states(self, codes: Tensor) -> Tensor:
        """What the indicators say about the numbers, (B, R): 1 where a number is there."""
        return torch.where(self.indicator >= 0, codes[:, self.indicator.clamp_min(0)], 1)


class _Inside(nn.Module):
    """What a value is inside its part: told to columns after it, and m, log s = w_k . h + b_k from those before it."""

    def __init__(self, parts: int, width: int):
        super().__init__()
        self.slope = nn.Parameter(EMBEDDED * torch.randn(parts, width))
        self.weight = nn.Parameter(torch.zeros(parts, 2 * width))
        self.bias = nn.Parameter(torch.zeros(parts, 2))

    def forward(self, part: Tensor, states: Tensor) -> Tensor:
        """Parts (B, n) of all numbers, states (B, n, width) -> (B, n, 2)."""
        weight = functional.embedding(part, self.weight).unflatten(-1, (2, -1))
        shape: Tensor = (weight * states[..., None, :]).sum(-1) + functional.embedding(part, self.bias)
        return shape


def _categorical(shape: TableShape) -> list[int]:
    """Variables that are columns of their own; the one that a table of numbers alone must have says nothing."""
    own = [j for j in range(len(shape.counts)) if j not in shape.indicators]
    return [] if shape.numbers and shape.counts == (1,) else own


def _back(states: Tensor, order: Tensor) -> Tensor:
    """States (B, N, width) in an order, in the table's."""
    rows, columns = order.shape
    place = order.argsort(1) + columns * torch.arange(rows, device=order.device)[:, None]
    return states.flatten(0, 1).index_select(0, place.flatten()).view_as(states)
