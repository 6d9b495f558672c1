"""A table's columns as the tokens of a model, and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from tessella.estimators.columns import Column, Kind
from tessella.estimators.values import Value, shown


@dataclass(frozen=True)
class Encoding:
    """rows (B, G + R): codes of the G categorical tokens, then R numbers, which is what `MixedDequantizer` takes.

    The categorical tokens are the columns of at least two categories, then an indicator (0 missing, 1 present) for each
    column of numbers in which some are missing. Where that makes none there is one token with a single category, as
    there must be one. A column with a single value needs no token: it has probability 1.
    """

    columns: tuple[Column, ...]

    @cached_property
    def categorical(self) -> list[int]:
        """Columns whose categories are cells, in the order of their tokens."""
        return [i for i, column in enumerate(self.columns) if len(column.categories) > 1]

    @cached_property
    def indicated(self) -> list[int]:
        """Columns of numbers with missing values, in the order of their indicators."""
        return [i for i, column in enumerate(self.columns) if column.number and column.missing]

    @cached_property
    def numbers(self) -> list[int]:
        """Columns of numbers, in the order of their tokens."""
        return [i for i, column in enumerate(self.columns) if column.number]

    @property
    def counts(self) -> tuple[int, ...]:
        """Categories of each categorical token."""
        own = tuple(len(self.columns[i].categories) for i in self.categorical)
        return own + (2,) * len(self.indicated) or (1,)

    @property
    def ordinal(self) -> list[bool]:
        """For each categorical token whether its codes have an order; a missing value at their end has none."""
        ordered = [self._ordered(self.columns[i]) for i in self.categorical]
        return ordered + [False] * (len(self.counts) - len(ordered))

    @property
    def unit(self) -> list[bool]:
        """For each number whether it is a count."""
        discrete: tuple[Kind, ...] = ("count", "date")
        return [self.columns[i].kind in discrete for i in self.numbers]

    @property
    def indicators(self) -> list[int]:
        """For each number the token that says whether it is there, or -1."""
        return [self._indicator(i) if i in self.indicated else -1 for i in self.numbers]

    def index(self, name: str) -> int:
        """The place of a column in the table."""
        names = [column.name for column in self.columns]
        if name not in names:
            raise ValueError(f"column: got {name!r}; expected one of {shown(names)}")
        return names.index(name)

    def tokens(self, column: int) -> list[int]:
        """Where in a row this column is: nowhere, one place, or an indicator and a number."""
        if column in self.categorical:
            return [self.categorical.index(column)]
        if column not in self.numbers:
            return []
        value = len(self.counts) + self.numbers.index(column)
        return [self._indicator(column), value] if column in self.indicated else [value]

    def encode(self, columns: Sequence[list[Value]], unseen: str = "error") -> Tensor:
        """Columns of plain values -> rows, (B, G + R), double precision, nothing missing."""
        encoded = [c.encode(values, unseen) for c, values in zip(self.columns, columns, strict=True)]
        rows = np.zeros((len(columns[0]), len(self.counts) + len(self.numbers)))
        for i in range(len(self.columns)):
            tokens = self.tokens(i)
            if tokens:
                rows[:, tokens[-1]] = np.nan_to_num(encoded[i])
            if len(tokens) > 1:
                rows[:, tokens[0]] = ~np.isnan(encoded[i])
        return torch.from_numpy(rows)

    def decode(self, rows: Tensor) -> list[list[Value]]:
        """Rows -> columns of plain values."""
        table = rows.double().cpu().numpy()
        return [column.decode(self._column(table, i)) for i, column in enumerate(self.columns)]

    def _column(self, table: np.ndarray, i: int) -> np.ndarray:
        tokens = self.tokens(i)
        if not tokens:
            return np.zeros(len(table))
        return (
            table[:, tokens[0]] if len(tokens) == 1 else np.where(table[:, tokens[0]] == 1, table[:, tokens[1]], np.nan)
        )

    def _indicator(self, column: int) -> int:
        return len(self.categorical) + self.indicated.index(column)

    @staticmethod
    def _ordered(column: Column) -> bool:
        return column.kind == "ordinal" and not column.missing
