"""A table's columns as the tokens of a model, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from tessella.data.tables.columns import Column
from tessella.data.tables.values import Value, shown


@dataclass(frozen=True)
class Encoding:
    """rows (B, G + R): codes of the G categorical tokens, then R numbers, which is what `MixedDequantizer` takes.

    The categorical tokens are the columns of at least two categories, then an indicator for each column of numbers in
    which some are missing or atoms: 1 says that the number is there, the other codes that it is missing or which atom
    it is (`Column.states`). Where that makes none there is one token with a single category, as there must be one. A
    column with a single value needs no token: it has probability 1.
    """

    columns: tuple[Column, ...]

    @cached_property
    def categorical(self) -> list[int]:
        """Columns whose categories are cells, in the order of their tokens."""
        return [i for i, column in enumerate(self.columns) if len(column.categories) > 1]

    @cached_property
    def indicated(self) -> list[int]:
        """Columns of numbers with missing values or atoms, in the order of their indicators."""
        return [i for i, column in enumerate(self.columns) if column.number and len(column.states) > 1]

    @cached_property
    def numbers(self) -> list[int]:
        """Columns of numbers, in the order of their tokens."""
        return [i for i, column in enumerate(self.columns) if column.number]

    @property
    def counts(self) -> tuple[int, ...]:
        """Categories of each categorical token."""
        own = tuple(len(self.columns[i].categories) for i in self.categorical)
        return own + tuple(len(self.columns[i].states) for i in self.indicated) or (1,)

    @property
    def ordinal(self) -> list[bool]:
        """For each categorical token whether its codes have an order; a missing value at their end has none."""
        ordered = [self._ordered(self.columns[i]) for i in self.categorical]
        return ordered + [False] * (len(self.counts) - len(ordered))

    @property
    def unit(self) -> list[bool]:
        """For each number whether it is an integer, of steps, with a mass."""
        return [self.columns[i].discrete for i in self.numbers]

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
        return self.assemble(encoded)

    def assemble(self, encoded: Sequence[np.ndarray]) -> Tensor:
        """For every column its codes, or numbers in steps with NaN where missing -> rows, (B, G + R)."""
        rows = np.zeros((len(encoded[0]), len(self.counts) + len(self.numbers)))
        for i, values in enumerate(encoded):
            rows[:, self.tokens(i)] = self.place(i, values)
        return torch.from_numpy(rows)

    def decode(self, rows: Tensor) -> list[list[Value]]:
        """Rows -> columns of plain values."""
        table = rows.double().cpu().numpy()
        return [column.decode(self.values(i, table)) for i, column in enumerate(self.columns)]

    def place(self, column: int, encoded: np.ndarray) -> np.ndarray:
        """Codes, or numbers with NaN where missing, as they stand in a row: (B, tokens of the column)."""
        tokens = self.tokens(column)
        if len(tokens) < 2:
            return np.repeat(encoded[:, None], len(tokens), 1)
        state = np.ones(len(encoded))
        for code, value in enumerate(self.columns[column].states):
            state[np.isnan(encoded) if np.isnan(value) else encoded == value] = code
        return np.stack([state, np.where(state == 1, encoded, 0)], 1)

    def values(self, column: int, table: np.ndarray) -> np.ndarray:
        """The inverse of `place`, from whole rows (B, G + R): (B)."""
        tokens = self.tokens(column)
        if not tokens:
            return np.zeros(len(table))
        if len(tokens) == 1:
            return table[:, tokens[0]]
        said = np.array(self.columns[column].states)[table[:, tokens[0]].astype(np.int64)]
        return np.where(np.isinf(said), table[:, tokens[1]], said)

    def canonical(self, given: Mapping[int, Sequence[float]]) -> dict[int, list[float]]:
        """Values of columns as they stand in a row, where an atom may still be written as a number that is there."""
        canonical = {}
        for column, standing in given.items():
            row = np.zeros((1, len(self.counts) + len(self.numbers)))
            row[0, self.tokens(column)] = standing
            canonical[column] = self.place(column, self.values(column, row))[0].tolist()
        return canonical

    def _indicator(self, column: int) -> int:
        return len(self.categorical) + self.indicated.index(column)

    @staticmethod
    def _ordered(column: Column) -> bool:
        return column.kind == "ordinal" and not column.missing
