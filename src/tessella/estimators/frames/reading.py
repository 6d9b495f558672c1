"""Frames of any library -> columns of plain Python values.

What leaves `read` is lists of bool, int, float, str, date, datetime and None: whatever a library calls a missing value
(None, NaN, NA, NaT, null) is None.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import narwhals as nw
import numpy as np

from tessella.data.tables.values import Value, shown
from tessella.estimators.frames.frame import NUMPY, Frame, Layout, module_of, plain_value


def read(frame: Any) -> Frame:
    """A pandas, polars or pyarrow table, or a two-dimensional array, as plain columns."""
    if isinstance(frame, np.ndarray | list | tuple):
        return _read_array(np.asarray(frame))
    labels = []
    if nw.dependencies.is_pandas_dataframe(frame):
        labels = _checked(list(frame.columns))
        frame = frame.set_axis([str(label) for label in labels], axis=1)
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise TypeError(
            f"frame: got {type(frame).__name__}; expected a pandas, polars or pyarrow table, or a 2-D NumPy "
            "array (a sparse matrix is not supported: use .toarray())"
        ) from None
    labels = labels or _checked(table.columns)
    native = nw.to_native(table)
    library = str(table.implementation)
    if library not in _DESCRIBE:
        raise TypeError(f"frame: got a table of {library}; expected pandas, polars or pyarrow")
    dtypes = tuple(_DESCRIBE[library](native, name) for name in table.columns)
    columns = tuple(_plain(name, table[name]) for name in table.columns)
    described = {name: dtype for name, dtype in zip(table.columns, dtypes, strict=True) if "categories" in dtype}
    orders = {name: dtype["categories"] for name, dtype in described.items() if dtype["ordered"]}
    unordered = tuple(name for name in described if name not in orders)
    return Frame(Layout(library, tuple(labels), dtypes), columns, len(table), orders, unordered)


def library_of(frame: Any) -> str:
    """The library of a frame that `read` accepts."""
    if isinstance(frame, np.ndarray | list | tuple):
        return NUMPY
    return str(nw.from_native(frame, eager_only=True).implementation)


def _checked(labels: list[Any]) -> list[Any]:
    """Labels of columns: text or integers, all different."""
    for label in labels:
        if not isinstance(label, str | int):
            raise TypeError(f"columns: got the label {label!r} ({type(label).__name__}); expected text or integers")
    twice = [label for label, times in Counter(str(label) for label in labels).items() if times > 1]
    if twice:
        raise ValueError(f"columns: {shown(twice)} appear more than once; expected different names, rename them")
    return labels


def _read_array(array: np.ndarray) -> Frame:
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: shape {array.shape}. "
            "Reshape your data: (rows, columns), e.g. with array.reshape(-1, 1) for one column"
        )
    if array.dtype.kind not in "biufOU":
        what = "Complex data not supported: " if array.dtype.kind == "c" else ""
        raise ValueError(f"{what}got an array of {array.dtype}; expected numbers, booleans, text or objects")
    labels = tuple(f"x{j}" for j in range(array.shape[1]))
    dtypes = ({"dtype": array.dtype.str},) * len(labels)
    columns = tuple([plain_value(value) for value in column.tolist()] for column in array.T)
    return Frame(Layout(NUMPY, labels, dtypes), columns, len(array))


def _plain(name: str, series: "nw.Series[Any]") -> list[Value]:
    """The cells of a column; those of plain dtypes are not looked at one by one."""
    if not series.null_count() and (series.dtype.is_integer() or series.dtype == nw.Boolean):
        return cast(list[Value], series.to_numpy().tolist())
    if series.dtype.is_float():
        numbers: list[float] = series.to_numpy().astype(np.float64, copy=False).tolist()  # null is NaN
        return [None if number != number else number for number in numbers]
    cells = zip(series.to_list(), series.is_null().to_list(), strict=True)
    if series.dtype == nw.String:
        return [None if gone else value for value, gone in cells]
    try:
        return [None if gone else plain_value(value) for value, gone in cells]
    except TypeError as error:
        raise TypeError(f"column {name!r}: {error}") from None


def _describe_pandas(frame: Any, name: str) -> dict[str, Any]:
    dtype = frame[name].dtype
    if str(dtype) == "category":
        categories = [plain_value(value) for value in dtype.categories.tolist()]
        return {"dtype": "category", "categories": categories, "ordered": bool(dtype.ordered)}
    return {"dtype": str(dtype)}


def _describe_polars(frame: Any, name: str) -> dict[str, Any]:
    polars = module_of("polars")
    dtype = frame.schema[name]
    described: dict[str, Any] = {"dtype": type(dtype).__name__}
    if isinstance(dtype, polars.Enum):
        return described | {"categories": dtype.categories.to_list(), "ordered": True}
    if isinstance(dtype, polars.Datetime):
        return described | {"time_unit": dtype.time_unit, "time_zone": dtype.time_zone}
    if isinstance(dtype, polars.Decimal):
        return described | {"precision": dtype.precision, "scale": dtype.scale}
    return described


def _describe_pyarrow(frame: Any, name: str) -> dict[str, Any]:
    pyarrow = module_of("pyarrow")
    dtype = frame.schema.field(name).type
    if not pyarrow.types.is_dictionary(dtype):
        return {"dtype": str(dtype)}
    chunks = [chunk.dictionary.to_pylist() for chunk in frame.column(name).chunks]
    categories = list(dict.fromkeys(value for chunk in chunks for value in chunk))
    described = {"dtype": "dictionary", "categories": categories, "ordered": dtype.ordered}
    return described | {"values": str(dtype.value_type), "indices": str(dtype.index_type)}


_DESCRIBE: dict[str, Callable[[Any, str], dict[str, Any]]] = {
    "pandas": _describe_pandas,
    "polars": _describe_polars,
    "pyarrow": _describe_pyarrow,
}
