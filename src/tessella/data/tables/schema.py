"""What the columns of a table mean: rows of text <-> integer codes."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from tessella import checks

_SHOWN = 6  # known values that an error message lists in full


@dataclass(frozen=True)
class Variable:
    """code k <-> categories[k].

    Args:
        name: the column's name.
        categories: the values it can take, all different; their order gives the codes.

    >>> Variable("size", ("small", "large")).encode(["large", "small"])
    [1, 0]
    """

    name: str
    categories: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.categories or len(set(self.categories)) < len(self.categories):
            raise ValueError(
                f"column {self.name!r}: got categories {self.categories}; expected at least one, all different"
            )

    def encode(self, values: Iterable[str]) -> list[int]:
        """The code of each value; a value that is not a category is an error."""
        codes = {category: code for code, category in enumerate(self.categories)}
        try:
            return [codes[value] for value in values]
        except KeyError as error:
            raise ValueError(self._unknown(error.args[0])) from None

    def _unknown(self, value: object) -> str:
        count = len(self.categories)
        known = ", ".join(self.categories if count <= _SHOWN else (*self.categories[: _SHOWN // 2], "..."))
        kind = "" if isinstance(value, str) else f"; values are text, this one is {type(value).__name__}"
        return f"column {self.name!r}: value {value!r} was not seen in training ({count} known values: {known}){kind}"


@dataclass(frozen=True)
class Schema:
    """codes[b, n] = k  <->  rows[b][n] = variables[n].categories[k].

    >>> schema = Schema((Variable("size", ("small", "large")), Variable("odor", ("a", "c", "f"))))
    >>> schema.encode([("large", "a"), ("small", "f")])
    tensor([[1, 0],
            [0, 2]])
    >>> schema.decode(torch.tensor([[1, 1]]))
    [('large', 'c')]
    >>> schema.encode([("large", "q")])
    Traceback (most recent call last):
        ...
    ValueError: column 'odor': value 'q' was not seen in training (3 known values: a, c, f)
    """

    variables: tuple[Variable, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of categories of each variable."""
        return tuple(len(variable.categories) for variable in self.variables)

    def encode(self, rows: Iterable[Sequence[str]]) -> Tensor:
        """Rows of text -> codes, int64 (B, N)."""
        rows = list(rows)
        expected = len(self.variables)
        for number, row in enumerate(rows):
            if len(row) != expected:
                raise ValueError(f"row {number}: got {len(row)} values; expected {expected}, one for each variable")
        columns = zip(*rows, strict=True) if rows else ((),) * expected
        codes = [variable.encode(column) for variable, column in zip(self.variables, columns, strict=True)]
        return torch.from_numpy(np.array(codes, dtype=np.int64).reshape(expected, len(rows)).T.copy())

    def decode(self, codes: Tensor) -> list[tuple[str, ...]]:
        """Codes (B, N) -> rows of text."""
        shape = (len(codes), len(self.variables))
        checks.indices("codes", codes, shape, torch.tensor(self.counts, device=codes.device))
        columns = zip(self.variables, codes.T.tolist(), strict=True)
        return list(zip(*([variable.categories[k] for k in column] for variable, column in columns), strict=True))

    def columns(self, codes: Tensor) -> dict[str, list[str]]:
        """Codes (B, N) -> columns of text by name."""
        columns = zip(*self.decode(codes), strict=True)
        return {variable.name: list(column) for variable, column in zip(self.variables, columns, strict=True)}

    def to_json(self) -> str:
        """JSON text that `from_json` turns back into an equal schema."""
        return json.dumps({"variables": [{"name": v.name, "categories": v.categories} for v in self.variables]})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The schema that `to_json` wrote."""
        try:
            variables = json.loads(text)["variables"]
            return cls(tuple(Variable(v["name"], tuple(v["categories"])) for v in variables))
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(
                f"schema: cannot be read ({type(error).__name__}: {error}); expected what Schema.to_json writes, "
                '{"variables": [{"name": ..., "categories": [...]}, ...]}'
            ) from error
