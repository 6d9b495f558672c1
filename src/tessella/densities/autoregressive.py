"""Rows of categories and numbers, one column after another in any order: exact likelihoods."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella import checks
from tessella.data.tables.bins import NumberDistribution
from tessella.data.tables.shape import TableShape
from tessella.densities import intervals
from tessella.densities.components import Components, Shares
from tessella.densities.number_parts import NumberParts, PlacedNumbers, Sizes
from tessella.densities.part_tables import PartGroups, PartTable
from tessella.nets import AnyOrder, RaggedLogits
from tessella.nets.linear import linear
from tessella.nets.ragged import HAND, log_mean

EMBEDDED = 0.1  # size of what the network is told about a value, at the start
APART = 0.25  # less than half, so that parts and the places in them, from -1 to 1, are told apart by one number
JEFFREYS = 0.5  # rows that every part is given before counting


class PlacedRows(NamedTuple):
    """Rows as the density sees them, their N columns as it numbers them: categories, then numbers."""

    flat: Tensor
    """The part that each column is in, (B, N), counted through all columns: its category, or the part of its number."""
    place: Tensor
    """Where in its group of parts a number lies, (B, N); 0 for categories."""
    numbers: PlacedNumbers | None
    """Of the last columns."""


class ColumnTables(NamedTuple):
    """Of the K parts of a column: what is computed once, however many rows there are."""

    head: Tensor
    """Weights of their logits, (K, width), and 0 for parts that there are not, so that K is even for `draw`."""
    bias: Tensor
    """The same, (K), and -infinity."""
    told: Tensor
    """What the network is told about each, in its middle, and components, (K, width + M)."""
    shares: Shares | None
    """What components say about each, where there are any; anything of parts that there are not."""
    wide: Tensor
    """Whether it has more than one value, (K)."""
    value: Tensor
    """Its value, or its first; of a category its code, (K)."""
    said: Tensor
    """What is said about it, 1 where a number is there, (K)."""

    def logits(self, state: Tensor) -> Tensor:
        """log P of every part up to a number for each row, from the state of the column, (B, width + M) -> (B, K)."""
        learned, evidence = state.tensor_split([self.head.shape[1]], -1)
        logits = linear(learned, self.head, self.bias)
        return logits if self.shares is None else logits + log_mean(*self.shares.mixed(evidence))


class Located(NamedTuple):
    """Values of a column by their parts."""

    part: Tensor
    """(B)."""
    wide: Tensor
    """Rows in whose part there are other values, (n)."""
    position: Tensor
    """Where in their part these are, from -1 to 1, (n)."""


class Autoregressive(nn.Module):
    """p_s(x) = prod_t pi_k(x_s(<t)) p_in(x_s(t) | k, x_s(<t)),  k = the part that holds x_s(t), for every order s.

    Each conditional is a disjoint mixture: one part of the column, one component. A category is a part, and nothing
    has to be known inside; the parts of a number are `NumberParts`, and inside a bin or tail its density is that of
    `densities.intervals`. Likelihoods are masses in categories, integers and atoms, and densities in real numbers.

    The N columns are the table's categorical variables that are no indicators, then its numbers, each with what its
    indicator says: a missing number, or one of the encoding's atoms, is a part.

    With components the network corrects a mixture m of products: pi_k(x_s(<t)) is proportional to
    m(k | x_s(<t)) exp(w_k . h + b_k). What makes whole rows alike a mixture learns from few of them, in any order at
    once, and the network learns the rest.

    Args:
        shape: of the table.
        sizes: (bins, atoms, groups) of each of its numbers, see `PartGroups`.
        width, layers, dropout, fast: of the network, see `AnyOrder`.
        components: M of the mixture; 0 for none.

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
        sizes: Sequence[tuple[int, int, int]],
        width: int,
        layers: int,
        dropout: float = 0.0,
        fast: bool = False,
        components: int = 0,
    ):
        super().__init__()
        if len(sizes) != shape.numbers:
            raise ValueError(f"sizes: got {len(sizes)}; expected {shape.numbers}, (bins, atoms, groups) of each number")
        if components < 0:
            raise ValueError(f"components: got {components}; expected how many, or 0 for none")
        self.shape = shape
        others = [shape.counts[i] - 1 if i >= 0 else 0 for i in shape.indicators]
        parts = [Sizes(bins, atoms, other) for (bins, atoms, _), other in zip(sizes, others, strict=True)]
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
        self.net = AnyOrder(len(self.counts), width, layers, dropout, fast, components)
        rows = [(part.parts, groups + part.others) for part, (_, _, groups) in zip(parts, sizes, strict=True)]
        self.groups = PartGroups(sum(self.counts[: self.categories]), rows, others)
        self.embed = PartTable(self.groups, width, EMBEDDED)
        self.head = PartTable(self.groups, width, 0.0)
        self.bias = nn.Parameter(torch.zeros(sum(self.counts)))
        self.logits = RaggedLogits(self.counts)
        self.inside = _Inside(self.groups, width) if parts else None
        self.components = Components(self.counts, components) if components else None

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
        categories = codes.index_select(1, self.categorical) + self.offset[: self.categories]
        if self.numbers is None or numbers is None:
            return PlacedRows(categories, self.bias.new_zeros(()).expand(categories.shape), None)
        checks.finite("numbers", numbers)
        placed = self.numbers(numbers.double(), self._states(codes), self.bias.dtype)
        flat = placed.part + self.offset[self.categories :]
        place = functional.pad(self._place(flat, placed.position), (self.categories, 0))
        return PlacedRows(torch.cat([categories, flat], 1), place, placed)

    def forward(self, rows: PlacedRows, order: Tensor) -> Tensor:
        """log p(x_j | those before j in the order) of every column, (B, N), columns as they are numbered.

        Args:
            rows: by their parts.
            order: of the columns, one for each row, (B, N).
        """
        shares = None if self.components is None else self.components()
        states = _back(self.net(self._told(rows, order, shares), order), order)
        learned, evidence = states.tensor_split([self.net.width], -1)
        mixed = None if shares is None else shares.mixed(evidence)
        heads = self.head.all(self.groups)
        log_prob: Tensor = self.logits(learned, heads, self.bias, rows.flat - self.offset, mixed)
        if rows.numbers is None:
            return log_prob
        inner = self._log_inside(rows, learned[:, self.categories :], slice(0, None))
        return log_prob + functional.pad(inner, (self.categories, 0))

    def conditional(self, rows: PlacedRows, column: int, known: Sequence[int]) -> tuple[Tensor, Tensor]:
        """log P of every part of a column given the known ones, (B, K), and log p of the value that is there, (B)."""
        order = torch.tensor([*known, column], device=rows.flat.device).expand(len(rows.flat), -1)
        shares = None if self.components is None else self.components()
        state = self.net(self._told(rows, order, shares), order)[:, -1]
        table = self.log_table(column, state)
        return table, self.log_value(rows, column, state, table)

    def log_table(self, column: int, state: Tensor) -> Tensor:
        """log P of every part of a column from its state, (B, width) -> (B, K)."""
        return self.tables(column).logits(state).log_softmax(-1)[:, : self.counts[column]]

    def tables(self, column: int) -> ColumnTables:
        """Of the parts of a column."""
        own = self.logits.own(column)
        absent = -self.counts[column] % HAND
        head = functional.pad(self.head.some(self.groups, own), (0, 0, 0, absent))
        bias = functional.pad(self.bias[own], (0, absent), value=-torch.inf)
        told, shares = self.embed.some(self.groups, own), None
        if self.components is not None:
            shares = self.components(column)
            told = torch.cat([told, shares.log_share], 1)
            shares = shares._replace(log_share=functional.pad(shares.log_share, (0, 0, 0, absent)))
        vectors = head, bias, told, shares
        if self.numbers is None or column < self.categories:
            code = torch.arange(self.counts[column], device=self.bias.device)
            return ColumnTables(*vectors, code < 0, code, torch.ones_like(code))
        number = column - self.categories
        return ColumnTables(*vectors, self.numbers.wide(number), *self.numbers.values(number))

    def arrange(self, found: Sequence[NumberDistribution], groups: Sequence[Tensor]) -> None:
        """Bins, atoms and groups of the numbers, as many as `sizes` says."""
        if self.numbers is not None:
            self.numbers.arrange([one.bins for one in found])
            self.groups.arrange(found, groups)

    @torch.no_grad()
    def start(self, rows: PlacedRows) -> None:
        """Begin as independent columns, log P_k = log (n_k + 1/2) / (n + K / 2), or components around them."""
        n = torch.bincount(rows.flat.flatten(), minlength=len(self.bias)).double()
        count = torch.tensor(self.counts, device=n.device)
        total = (len(rows.flat) + JEFFREYS * count.double()).repeat_interleave(count)
        log_frequency = (n + JEFFREYS).log() - total.log()
        if self.components is None:
            self.bias.copy_(log_frequency)
        else:
            self.components.start(log_frequency)

    def _told(self, rows: PlacedRows, order: Tensor, shares: Shares | None) -> Tensor:
        """What network and components are told about the values of columns in an order (B, n): (B, n, width + M)."""
        flat = rows.flat.gather(1, order)
        told: Tensor = self.embed(self.groups, flat, rows.place.gather(1, order))
        return told if shares is None else torch.cat([told, functional.embedding(flat, shares.log_share)], -1)

    def _place(self, flat: Tensor, position: Tensor) -> Tensor:
        """Where in its group a number lies, by its part and where it is inside."""
        return torch.addcmul(self.groups.centre[flat], self.groups.radius[flat], position)

    def _log_inside(self, rows: PlacedRows, states: Tensor, own: slice) -> Tensor:
        """log p_in of some of the numbers, from the states (B, n, width) of their columns: (B, n)."""
        assert self.inside is not None
        assert rows.numbers is not None
        where = intervals.Places(*(part[:, own] for part in rows.numbers.where))
        flat = rows.flat[:, self.categories :][:, own]
        log_density = intervals.log_density(where, self.inside(self.groups, flat, states))
        return torch.where(rows.numbers.inside[:, own], log_density, 0)

    def locate(self, column: int, codes: Tensor, numbers: Tensor | None = None) -> Located:
        """The values of one column of a batch."""
        if self.numbers is None or numbers is None or column < self.categories:
            part = codes[:, self.variables[column]]
            return Located(part, part[:0], self.bias[:0].double())
        number = column - self.categories
        own = slice(number, number + 1)
        found = self.numbers.locate(numbers[:, own].double(), self._states(codes, own), number)
        wide = found.inside[:, 0].nonzero()[:, 0]
        return Located(found.part[:, 0], wide, found.position[:, 0][wide])

    def told(self, column: int, located: Located, tables: ColumnTables) -> tuple[Tensor, Tensor]:
        """What is told about values of a column, (B, width + M), and a key that tells them apart, (B)."""
        told, key = functional.embedding(located.part, tables.told), located.part.double()
        if len(located.wide):
            flat = located.part[located.wide] + self.offset[column]
            place = self._place(flat, located.position.to(self.bias.dtype))
            told[located.wide, : self.net.width] = self.embed(self.groups, flat, place)
            key[located.wide] += APART * located.position
        return told, key

    def _states(self, codes: Tensor, own: slice = slice(None)) -> Tensor:
        """What the indicators say about the numbers, (B, R), or some of them: 1 where a number is there."""
        indicator = self.indicator[own]
        return torch.where(indicator >= 0, codes[:, indicator.clamp_min(0)], 1)

    def log_value(self, rows: PlacedRows, column: int, state: Tensor, table: Tensor) -> Tensor:
        """log p of what is there in a column, from its state (B, width) and the table (B, K) of that: (B)."""
        log_prob = table.gather(1, (rows.flat - self.offset)[:, column, None])[:, 0]
        if column < self.categories:
            return log_prob
        number = column - self.categories
        return log_prob + self._log_inside(rows, state[:, None], slice(number, number + 1))[:, 0]

    def vectors(self, column: int) -> Tensor:
        """What the network is told about each category of a column, (K, width)."""
        return self.embed.all(self.groups)[self.logits.own(column)].detach()


class _Inside(nn.Module):
    """m, log s = w_g . h + b_k: the density inside part k of group g, from the state h of its column."""

    def __init__(self, groups: PartGroups, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(groups.rows - groups.categories, 2 * width))
        self.bias = nn.Parameter(torch.zeros(len(groups.row) - groups.categories, 2))

    def forward(self, groups: PartGroups, part: Tensor, states: Tensor) -> Tensor:
        """Parts of numbers (*batch), counted through all columns, states (*batch, width + M) -> (*batch, 2)."""
        weight = functional.embedding(groups.row[part] - groups.categories, self.weight).unflatten(-1, (2, -1))
        bias = functional.embedding(part - groups.categories, self.bias)
        learned = states[..., None, : weight.shape[-1]]
        shape: Tensor = (weight * learned).sum(-1) + bias
        return shape


def _categorical(shape: TableShape) -> list[int]:
    """Variables that are columns of their own; the one that a table of numbers alone must have says nothing."""
    own = [j for j in range(len(shape.counts)) if j not in shape.indicators]
    return [] if shape.numbers and shape.counts == (1,) else own


def _back(states: Tensor, order: Tensor) -> Tensor:
    """States (B, N, width) in an order, as their columns are numbered."""
    rows, columns = order.shape
    place = order.argsort(1) + columns * torch.arange(rows, device=order.device)[:, None]
    return states.flatten(0, 1).index_select(0, place.flatten()).view_as(states)
