"""Rows of an `Autoregressive` density whose columns become known one after another, as questions need them."""

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cache

import torch
from torch import Tensor

from tessella.contracts import Batch
from tessella.data.tables.limits import Limit
from tessella.densities import intervals
from tessella.densities.autoregressive import Autoregressive, Located, PlacedRows
from tessella.densities.surprises import excess
from tessella.nets.ragged import draw


class RowWalk:
    """p(x_j | those told before j) by its parts, for every column j that is asked for.

    A column is asked for, drawn where it is not known, and told. Limits and changes of the probabilities are the
    business of who walks.

    Args:
        density: of the rows.
        batch: rows; what they say about columns that are drawn makes no difference.
    """

    def __init__(self, density: Autoregressive, *batch: Tensor):
        self.density, self.walk = density, density.net.walk(len(batch[0]))
        self.codes, self.numbers = (*(part.clone() for part in batch), None)[:2]
        self.placed: PlacedRows | None = None  # the rows as the density sees them, until something is written
        self.located: dict[int, Located] = {}  # the same of the column that was drawn last
        self.tables = cache(density.tables)
        self.state: Tensor = density.bias
        self.table: Tensor = density.bias

    def __len__(self) -> int:
        return self.walk.rows

    @property
    def shared(self) -> bool:
        """Whether rows that were told the same are still walked through as one."""
        return self.walk.branch is not None

    @property
    def batch(self) -> Batch:
        """The rows as they are now."""
        assert self.codes is not None
        return (self.codes,) if self.numbers is None else (self.codes, self.numbers)

    def ask(self, column: int) -> Tensor:
        """log P of every part of a column, (B, K)."""
        self.state = self.walk.spread(self.walk.ask(column))
        self.table = self.density.log_table(column, self.state)
        return self.table

    def tell(self, column: int) -> None:
        """What the rows say about the column that was asked for."""
        located = self.located.get(column) or self.density.locate(column, *self.batch)
        self.walk.tell(column, *self.density.told(column, located, self.tables(column)))

    def know(self, column: int) -> None:
        """What the rows say about a column that nobody has to be asked about."""
        self.walk.skip(column)
        self.tell(column)

    def log_prob(self, column: int) -> Tensor:
        """log p of what the rows say about the column that was asked for, (B)."""
        return self.density.log_value(self._place(), column, self.state, self.table)

    def excess(self, column: int) -> Tensor:
        """How much more that surprises than values of the column do on average, (B); see `excess_surprise`."""
        part = self._place().flat[:, column] - self.density.offset[column]
        inside, dense = torch.zeros_like(self.table[0]).double(), torch.zeros_like(self.table[0]).bool()
        if column >= self.density.categories and self.density.numbers is not None:
            bins = self.density.numbers.of(column - self.density.categories)
            inside[: bins.parts], dense[: bins.parts] = bins.mean_log_spread, bins.dense
        return excess(self.log_prob(column).double(), self.table.double(), part, inside, dense)

    def within(self, column: int, limit: Limit) -> Tensor:
        """log of the share of every part that meets a limit, (B, K) or, where it is the same for all rows, (1, K)."""
        if column < self.density.categories:
            return limit.allowed.to(self.table).log()
        part, ranges = self._ranges(column, limit)
        share = ranges[..., 1] - ranges[..., 0]
        partly = ((share > 0) & (share < 1)).any(0).nonzero()[:, 0]
        if len(partly):
            assert self.density.inside is not None
            shape = self.density.inside(self.density.groups, part[partly], self.state[:, None])  # (B, k, 2)
            first, last = (ranges[:, partly, i].expand(shape.shape[:-1]) for i in (0, 1))
            share = share.expand(len(shape), -1).clone()
            share[:, partly] = intervals.cumulative(last, shape) - intervals.cumulative(first, shape)
        allowed = limit.allowed.to(share).expand(len(share), -1)
        return torch.cat([share, allowed], 1).clamp_min(0).log().to(self.table)

    def draw(self, column: int, part: Tensor, limit: Limit | None = None) -> None:
        """Write a value of these parts (B) of the column that was asked for into the rows, inside a limit."""
        density, tables, self.placed = self.density, self.tables(column), None
        assert self.codes is not None
        if column < density.categories:
            self.codes[:, density.variables[column]] = part
            self.located = {column: Located(part, part[:0], density.bias[:0].double())}
            return
        assert self.numbers is not None
        wide = tables.wide[part].nonzero()[:, 0]
        value, position = tables.value[part], density.bias[:0].double()
        if len(wide):
            value[wide], position = self._inside(column, part[wide], wide, limit)
        number = column - density.categories
        self.numbers[:, number] = value.to(self.numbers.dtype)
        if density.shape.indicators[number] >= 0:
            self.codes[:, density.shape.indicators[number]] = tables.said[part]
        self.located = {column: Located(part, wide, position)}

    def _inside(self, column: int, part: Tensor, rows: Tensor, limit: Limit | None) -> tuple[Tensor, Tensor]:
        """Values of these parts of some rows, and where inside they are, (n) each."""
        density = self.density
        assert density.inside is not None
        assert density.numbers is not None
        shape = density.inside(density.groups, part + density.offset[column], self.state[rows])
        span = () if limit is None else self._span(column, part, rows, limit)
        value, position = density.numbers.at(column - density.categories, part, intervals.draw(shape, *span))
        if limit is not None:  # rounding may put a number a hair outside
            low, high = (end[rows] if len(end) > 1 else end for end in (limit.low, limit.high))
            value = torch.minimum(torch.maximum(value, low), high)
        return value, position

    def step(self, column: int, known: bool) -> None:
        """Tell what is known about a column; draw and tell another."""
        if known:
            self.know(column)
            return
        state = self.walk.ask(column)
        part = draw(self.tables(column).logits(state), self.walk.branch)
        self.state = self.walk.spread(state)
        self.draw(column, part)
        self.tell(column)

    def split(self, rows: int) -> Iterator["RowWalk"]:
        """The same for so many rows at a time; what they write is written here."""
        for walk, *batch in zip(self.walk.split(rows), *(part.split(rows) for part in self.batch), strict=True):
            part = copy(self)
            part.walk, part.placed, part.located = walk, None, {}
            part.codes, part.numbers = (*batch, None)[:2]
            yield part

    def put(self, tokens: Sequence[int], values: Tensor) -> None:
        """Write a column into the rows as it stands there, codes first and then numbers, (B, tokens)."""
        first, self.placed, self.located = len(self.density.shape.counts), None, {}
        for token, value in zip(tokens, values.to(self.density.bias.device).T, strict=True):
            part = self.batch[int(token >= first)]
            part[:, token - first if token >= first else token] = value.to(part.dtype)

    def _place(self) -> PlacedRows:
        """The rows as they are now, by their parts."""
        if self.placed is None:
            self.placed = self.density.place(*self.batch)
        return self.placed

    def _ranges(self, column: int, limit: Limit) -> tuple[Tensor, Tensor]:
        """The tails, bins and atoms of a number, counted through all columns, and which t of each meet the limit."""
        assert self.density.numbers is not None
        ranges = self.density.numbers.of(column - self.density.categories).ranges(limit.low, limit.high)
        part = torch.arange(ranges.shape[1], device=ranges.device) + self.density.offset[column]
        return part, ranges

    def _span(self, column: int, part: Tensor, rows: Tensor, limit: Limit) -> tuple[Tensor, Tensor]:
        """First and last t that meet the limit in these parts of some rows, (n) each."""
        _, ranges = self._ranges(column, limit)
        first, last = ranges[rows if len(ranges) > 1 else torch.zeros_like(rows), part].unbind(-1)
        return first, last
