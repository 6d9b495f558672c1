"""Columns of plain Python values, and how to make the same kind of frame of them again."""

import decimal
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from tessella.data.tables.values import PLAIN, Value, from_json, shown, to_json

NUMPY = "numpy"
LIBRARIES = ("pandas", "polars", "pyarrow", NUMPY)


@dataclass(frozen=True)
class Layout:
    """The library, the labels of the columns, and their dtypes, described."""

    library: str
    labels: tuple[str | int, ...]
    dtypes: tuple[dict[str, Any], ...]

    @property
    def is_array(self) -> bool:
        """Whether the columns are those of a NumPy array, which have no names of their own."""
        return self.library == NUMPY

    def to_json(self) -> dict[str, Any]:
        """The layout in JSON's types."""
        dtypes = [{key: to_json(v) if key == "categories" else v for key, v in d.items()} for d in self.dtypes]
        return {"library": self.library, "labels": list(self.labels), "dtypes": dtypes}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> "Layout":
        """The layout that `to_json` wrote; `check_layout` says whether it is one of a table's columns."""
        if said["library"] not in LIBRARIES:
            raise ValueError(f"layout: got the library {said['library']!r}; expected one of {', '.join(LIBRARIES)}")
        if not all(type(label) in (str, int) for label in said["labels"]):
            raise ValueError(f"layout: got the labels {shown(said['labels'])}; expected text or integers")
        dtypes = [{key: from_json(v) if key == "categories" else v for key, v in d.items()} for d in said["dtypes"]]
        return cls(said["library"], tuple(said["labels"]), tuple(dtypes))


@dataclass(frozen=True)
class Frame:
    """Columns of plain values, all of one length."""

    layout: Layout
    columns: tuple[list[Value], ...]
    rows: int
    orders: dict[str, list[Value]] = field(default_factory=dict)
    """Categories of the columns whose dtype orders them."""
    categorical: tuple[str, ...] = ()
    """Columns whose dtype says that they are categories, without an order."""

    @property
    def names(self) -> list[str]:
        """The columns' names, as text."""
        return [str(label) for label in self.layout.labels]


def plain_value(value: Any) -> Value:
    """A cell as a plain value; None where it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value:  # NaN
        return None
    if isinstance(value, decimal.Decimal):
        return float(value)
    if not isinstance(value, PLAIN):
        raise TypeError(
            f"cells: got {shown([value])} ({type(value).__name__}; argument must be a string or a number): expected "
            "booleans, numbers, text or dates; convert that column first, or leave it out"
        )
    return value


def module_of(library: str) -> Any:
    """The module of a library; the user has it, since a frame of it came."""
    return nw.Implementation(library).to_native_namespace()
