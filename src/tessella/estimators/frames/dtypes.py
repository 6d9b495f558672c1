"""The dtypes that a saved layout may name: those that `read` describes, and nothing that a library looks up by name."""

import re
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np

from tessella.data import Column
from tessella.data.tables.values import Value
from tessella.estimators.frames.frame import NUMPY, Layout
from tessella.estimators.frames.writing import write

LONGEST_TEXT = 10_000  # characters of an array's dtype, where no category is longer
_ZONE = r"[A-Za-z0-9_+\-/:]+"
_ARROW = (
    rf"(u?int(8|16|32|64)|bool|halffloat|float|double|(large_)?string|string_view|date32\[day\]|date64\[ms\]"
    rf"|timestamp\[(s|ms|us|ns)(, tz={_ZONE})?\]|decimal(32|64|128|256)\(\d{{1,2}}, \d{{1,2}}\))"
)
_NAMES = {
    "pandas": rf"(u?int|UInt|Int)(8|16|32|64)|[fF]loat(16|32|64)|bool|boolean|object|str|string(\[\w+\])?|category"
    rf"|datetime64\[(s|ms|us|ns)(, {_ZONE})?\]|{_ARROW}\[pyarrow\]",
    "polars": r"U?Int(8|16|32|64|128)|Float(16|32|64)|Boolean|String|Categorical|Enum|Date|Datetime|Decimal",
    "pyarrow": rf"{_ARROW}|dictionary",
    NUMPY: r"[<>|=]?(b1|[iu][1248]|f(2|4|8|12|16)|O|U\d{1,9})",
}
_ENTRIES = {"dtype", "categories", "ordered", "time_unit", "time_zone", "values", "indices", "precision", "scale"}


def check_layout(layout: Layout, columns: Sequence[Column]) -> None:
    """The layout is one of these columns: it knows their names, and its dtypes hold their values."""
    names = [str(label) for label in layout.labels]
    if names != [column.name for column in columns] or len(layout.dtypes) != len(names):
        raise ValueError(f"layout: got labels {names!r:.80} and {len(layout.dtypes)} dtypes; expected one a column")
    for name, dtype in zip(names, layout.dtypes, strict=True):
        _check(layout.library, name, dtype)
    if layout.is_array:
        _check_length(layout, columns)
    try:
        write(layout, _examples(columns))
    except ModuleNotFoundError:
        return  # rows can be scored without the library that they were fitted from
    except Exception as error:  # whatever a library says about values and dtypes
        raise ValueError(f"layout: the dtypes do not hold the columns ({type(error).__name__}: {error})") from error


def _check(library: str, name: str, dtype: dict[str, Any]) -> None:
    found = {key: dtype.get(key) for key in ("dtype", "values", "indices") if key in dtype}
    unknown = set(dtype) - _ENTRIES
    if "dtype" not in dtype or unknown:
        raise ValueError(f"layout: column {name!r}: got {dtype!r:.80}; expected its dtype, described")
    for said in found.values():
        if not isinstance(said, str) or not re.fullmatch(_NAMES[library], said):
            raise ValueError(f"layout: column {name!r}: got the dtype {said!r:.80}; expected one of {library}'s")


def _check_length(layout: Layout, columns: Sequence[Column]) -> None:
    """An array of text has room for the texts, and not for much longer ones: its cells are all as large."""
    longest = max((len(value) for c in columns for value in c.categories if isinstance(value, str)), default=0)
    dtype = str(layout.dtypes[0]["dtype"])
    length = int(dtype.partition("U")[2] or 0)
    if length > max(LONGEST_TEXT, longest):
        raise ValueError(f"layout: got the dtype {dtype!r}; expected texts of at most {max(LONGEST_TEXT, longest)}")


def _examples(columns: Sequence[Column]) -> list[list[Value]]:
    """Of every column all categories, or the ends of its range, and missing where that was seen."""
    values = [_values(column) for column in columns]
    rows = max(map(len, values))
    return [list(islice(cycle(column), rows)) for column in values]


def _values(column: Column) -> list[Value]:
    if not column.number:
        return list(column.categories)
    return [*column.decode(np.array([column.low, column.high])), *[None] * column.missing]
