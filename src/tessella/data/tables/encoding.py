"""A table's columns as the batches of a model, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from tessella import checks
from tessella.contracts import Batch
from tessella.data.tables.columns import Column
from tessella.data.tables.shape import TableShape
from tessella.data.tables.values import Value, nearest, shown


@dataclass(frozen=True)
class Encoding:
    """columns <-> batches (codes,) or (codes, numbers): codes int64 (B, G), numbers float64 (B, R), there if R > 0.

    The G categorical variables are the columns of at least two categories, then an indicator for each column of numbers
    in which some are missing or atoms: 1 says that the number is there, the other codes that it is missing or which
    atom it is (`Column.states`). Where that makes none there is one variable with a single category, as there must be
    one. A column with a single value needs no variable: it has probability 1.

    Where a part of a row is given or explained, rows are matrices (B, G + R), codes first, in double precision; `join`
    and `split` go from batches to matrices and back, and `tokens` says where in a row a column stands.

    >>> size, weight = Column("size", "categorical", ("small", "large")), Column("weight", "count", high=9, whole=True)
    >>> encoding = Encoding((size, weight))
    >>> encoding.encode([["large", "small"], [3, 9]])
    (tensor([[1],
            [0]]), tensor([[3.],
            [9.]], dtype=torch.float64))
    >>> encoding.decode(torch.tensor([[1]]), torch.tensor([[7.0]]))
    [['large'], [7]]
    """

    columns: tuple[Column, ...]

    @cached_property
    def categorical(self) -> list[int]:
        """Columns whose categories are cells, in the order of their variables."""
        return [i for i, column in enumerate(self.columns) if len(column.categories) > 1]

    @cached_property
    def indicated(self) -> list[int]:
        """Columns of numbers with missing values or atoms, in the order of their indicators."""
        return [i for i, column in enumerate(self.columns) if column.number and len(column.states) > 1]

    @cached_property
    def numbers(self) -> list[int]:
        """Columns of numbers, in their order."""
        return [i for i, column in enumerate(self.columns) if column.number]

    @cached_property
    def variables(self) -> list[int]:
        """Columns with more than one value, as models number them: categories, then numbers."""
        return [*self.categorical, *self.numbers]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Categories of each categorical variable, (G,)."""
        own = tuple(len(self.columns[i].categories) for i in self.categorical)
        return own + tuple(len(self.columns[i].states) for i in self.indicated) or (1,)

    @cached_property
    def ordered(self) -> tuple[bool, ...]:
        """For each categorical variable whether its codes have an order; a missing value at their end has none."""
        columns = [self.columns[i] for i in self.categorical]
        ordered = tuple(column.kind == "ordinal" and not column.missing for column in columns)
        return ordered + (False,) * (len(self.counts) - len(ordered))

    @cached_property
    def whole(self) -> tuple[bool, ...]:
        """For each number whether it is an integer, of steps, with a mass."""
        return tuple(self.columns[i].discrete for i in self.numbers)

    @cached_property
    def indicators(self) -> tuple[int, ...]:
        """For each number the categorical variable that says whether it is there, or -1."""
        return tuple(self._tokens[i][0] if len(self._tokens[i]) > 1 else -1 for i in self.numbers)

    @cached_property
    def shape(self) -> TableShape:
        """What a model must be told about the table."""
        return TableShape(self.counts, self.whole, self.indicators, self.ordered)

    def index(self, name: str) -> int:
        """The place of a column in the table."""
        if name not in self._places:
            names = list(self._places)
            raise ValueError(f"column: got {name!r}; expected one of {shown(names)}{nearest(name, names)}")
        return self._places[name]

    def encode(self, columns: Sequence[Sequence[Value]], unseen: str = "error") -> Batch:
        """Columns of plain values -> batch, nothing missing.

        Args:
            columns: as many as the table has, in its order.
            unseen: what to do with a category that the column does not know: "error", or take it for "missing".
        """
        self._check_columns(columns)
        return self.split(
            self.assemble([c.encode(values, unseen) for c, values in zip(self.columns, columns, strict=True)])
        )

    def decode(self, *batch: Tensor) -> list[list[Value]]:
        """Batch -> columns of plain values."""
        rows = self.join(*batch).cpu().numpy()
        return [column.decode(self.values(i, rows)) for i, column in enumerate(self.columns)]

    def by_name(self, *batch: Tensor) -> dict[str, list[Value]]:
        """Batch -> columns of plain values by name.

        >>> Encoding((Column("size", "categorical", ("small", "large")),)).by_name(torch.tensor([[1], [0]]))
        {'size': ['large', 'small']}
        """
        return {column.name: values for column, values in zip(self.columns, self.decode(*batch), strict=True)}

    def split(self, rows: Tensor) -> Batch:
        """Rows (B, G + R) -> batch."""
        checks.trailing("rows", rows, (self.shape.variables,), "G + R")
        codes, numbers = rows.split([len(self.counts), len(self.numbers)], dim=1)
        return (codes.long(), numbers.double()) if self.numbers else (codes.long(),)

    def join(self, codes: Tensor, numbers: Tensor | None = None) -> Tensor:
        """Batch -> rows (B, G + R), double precision: the inverse of `split`."""
        counts = torch.tensor(self.counts, device=codes.device)
        checks.indices("codes", codes, (len(codes), len(counts)), counts)
        if numbers is None:
            numbers = codes.new_empty(len(codes), 0)
        checks.trailing("numbers", numbers, (len(codes), len(self.numbers)), "B, R")
        return torch.cat([codes.double(), numbers.double()], 1)

    def tokens(self, column: int) -> list[int]:
        """Where in a row (B, G + R) this column is: nowhere, one place, or an indicator and a number."""
        return self._tokens[column]

    def assemble(self, encoded: Sequence[np.ndarray]) -> Tensor:
        """For every column its codes, or numbers in steps with NaN where missing -> rows (B, G + R)."""
        rows = np.zeros((len(encoded[0]), self.shape.variables))
        for i, values in enumerate(encoded):
            rows[:, self.tokens(i)] = self.place(i, values)
        return torch.from_numpy(rows)

    def place(self, column: int, encoded: np.ndarray) -> np.ndarray:
        """Codes, or numbers with NaN where missing, as they stand in a row: (B, tokens of the column)."""
        tokens = self.tokens(column)
        if len(tokens) < 2:
            return np.repeat(encoded[:, None], len(tokens), 1)
        state = np.ones(len(encoded))
        for code, value in enumerate(self.columns[column].states):
            state[np.isnan(encoded) if np.isnan(value) else encoded == value] = code
        return np.stack([state, np.where(state == 1, encoded, 0)], 1)

    def values(self, column: int, rows: np.ndarray) -> np.ndarray:
        """The inverse of `place`, from whole rows (B, G + R): (B)."""
        tokens = self.tokens(column)
        if not tokens:
            return np.zeros(len(rows))
        if len(tokens) == 1:
            return rows[:, tokens[0]]
        said = np.array(self.columns[column].states)[rows[:, tokens[0]].astype(np.int64)]
        return np.where(np.isinf(said), rows[:, tokens[1]], said)

    def canonical(self, given: Mapping[int, Sequence[float]]) -> dict[int, list[float]]:
        """Values of columns as they stand in a row, where an atom may still be written as a number that is there."""
        canonical = {}
        for column, written in given.items():
            row = np.zeros((1, self.shape.variables))
            row[0, self.tokens(column)] = written
            canonical[column] = self.place(column, self.values(column, row))[0].tolist()
        return canonical

    def to_json(self) -> list[dict[str, Any]]:
        """The columns in JSON's types."""
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, said: Sequence[Mapping[str, Any]]) -> Self:
        """The encoding that `to_json` wrote."""
        try:
            return cls(tuple(Column.from_json(dict(column)) for column in said))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"columns: cannot be read ({type(error).__name__}: {error}); expected what Encoding.to_json writes, "
                '[{"name": ..., "kind": ..., "categories": [...]}, ...]'
            ) from error

    @cached_property
    def _tokens(self) -> list[list[int]]:
        """`tokens` of every column."""
        found: list[list[int]] = [[] for _ in self.columns]
        for places, first in (
            (self.categorical, 0),
            (self.indicated, len(self.categorical)),
            (self.numbers, len(self.counts)),
        ):
            for token, column in enumerate(places, first):
                found[column].append(token)
        return found

    @cached_property
    def _places(self) -> dict[str, int]:
        return {column.name: place for place, column in enumerate(self.columns)}

    def _check_columns(self, columns: Sequence[Sequence[Value]]) -> None:
        if len(columns) != len(self.columns):
            raise ValueError(f"columns: got {len(columns)}; expected {len(self.columns)}")
        for column, values in zip(self.columns, columns, strict=True):
            if len(values) != len(columns[0]):
                raise ValueError(
                    f"column {column.name!r}: got {len(values)} values; expected {len(columns[0])}, as in the first"
                )
