"""Frames of any library <-> columns of plain Python values.

What leaves `read` is lists of bool, int, float, str, date, datetime and None: whatever a library calls a missing value
(None, NaN, NA, NaT, null) is None. A `Layout` remembers how to make the same kind of frame again.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from tessella.data.tables.values import PLAIN, Value, from_json, shown, to_json

_NUMPY = "numpy"


@dataclass(frozen=True)
class Layout:
    """The library, the labels of the columns, and their dtypes, described."""

    library: str
    labels: tuple[str | int, ...]
    dtypes: tuple[dict[str, Any], ...]

    @property
    def is_array(self) -> bool:
        """Whether the columns are those of a NumPy array, which have no names of their own."""
        return self.library == _NUMPY

    def to_json(self) -> dict[str, Any]:
        """The layout in JSON's types."""
        dtypes = [{key: to_json(v) if key == "categories" else v for key, v in d.items()} for d in self.dtypes]
        return {"library": self.library, "labels": list(self.labels), "dtypes": dtypes}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> "Layout":
        """The layout that `to_json` wrote."""
        if said["library"] not in _WRITE:
            raise ValueError(f"layout: got the library {said['library']!r}; expected one of {', '.join(_WRITE)}")
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
    columns = tuple(_plain(table[name]) for name in table.columns)
    described = {name: dtype for name, dtype in zip(table.columns, dtypes, strict=True) if "categories" in dtype}
    orders = {name: dtype["categories"] for name, dtype in described.items() if dtype["ordered"]}
    unordered = tuple(name for name in described if name not in orders)
    return Frame(Layout(library, tuple(labels), dtypes), columns, len(table), orders, unordered)


def write(layout: Layout, columns: Sequence[list[Value]]) -> Any:
    """A frame of this layout; pandas gets a fresh index."""
    return _WRITE[layout.library](layout, columns)


def library_of(frame: Any) -> str:
    """The library of a frame that `read` accepts."""
    if isinstance(frame, np.ndarray | list | tuple):
        return _NUMPY
    return str(nw.from_native(frame, eager_only=True).implementation)


def write_new(library: str, columns: dict[str, list[Any]]) -> Any:
    """A frame of any columns; for arrays a structured array."""
    if library == _NUMPY:
        arrays = {name: np.array(values) for name, values in columns.items()}
        rows = list(zip(*columns.values(), strict=True))
        return np.array(rows, dtype=[(name, array.dtype) for name, array in arrays.items()])
    return nw.from_dict(columns, backend=_native(library)).to_native()


def _native(library: str) -> Any:
    """The library itself; the user has it, since a frame of it came."""
    return nw.Implementation(library).to_native_namespace()


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
    return Frame(Layout(_NUMPY, labels, dtypes), columns, len(array))


def _plain(series: "nw.Series[Any]") -> list[Value]:
    missing = series.is_null().to_list()
    return [None if gone else plain_value(value) for value, gone in zip(series.to_list(), missing, strict=True)]


def plain_value(value: Any) -> Value:
    """A cell as a plain value; None where it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value:  # NaN
        return None
    if not isinstance(value, PLAIN):
        raise TypeError(
            f"cells: got {shown([value])} ({type(value).__name__}; argument must be a string or a number): expected "
            "booleans, numbers, text or dates; convert that column first"
        )
    return value


def _describe_pandas(frame: Any, name: str) -> dict[str, Any]:
    dtype = frame[name].dtype
    if str(dtype) == "category":
        categories = [plain_value(value) for value in dtype.categories.tolist()]
        return {"dtype": "category", "categories": categories, "ordered": bool(dtype.ordered)}
    return {"dtype": str(dtype)}


def _describe_polars(frame: Any, name: str) -> dict[str, Any]:
    polars = _native("polars")
    dtype = frame.schema[name]
    described: dict[str, Any] = {"dtype": type(dtype).__name__}
    if isinstance(dtype, polars.Enum):
        return described | {"categories": dtype.categories.to_list(), "ordered": True}
    if isinstance(dtype, polars.Datetime):
        return described | {"time_unit": dtype.time_unit, "time_zone": dtype.time_zone}
    return described


def _describe_pyarrow(frame: Any, name: str) -> dict[str, Any]:
    pyarrow = _native("pyarrow")
    dtype = frame.schema.field(name).type
    if not pyarrow.types.is_dictionary(dtype):
        return {"dtype": str(dtype)}
    chunks = [chunk.dictionary.to_pylist() for chunk in frame.column(name).chunks]
    categories = list(dict.fromkeys(value for chunk in chunks for value in chunk))
    described = {"dtype": "dictionary", "categories": categories, "ordered": dtype.ordered}
    return described | {"values": str(dtype.value_type), "indices": str(dtype.index_type)}


def _write_pandas(layout: Layout, columns: Sequence[list[Value]]) -> Any:
    pandas = _native("pandas")

    def series(values: list[Value], dtype: dict[str, Any]) -> Any:
        if dtype["dtype"] != "category":
            return pandas.Series(values, dtype=dtype["dtype"])
        kind = pandas.CategoricalDtype(dtype["categories"], dtype["ordered"])
        return pandas.Series(values, dtype=kind)

    parts = [series(values, dtype) for values, dtype in zip(columns, layout.dtypes, strict=True)]
    return pandas.concat(parts, axis=1, keys=range(len(parts))).set_axis(list(layout.labels), axis=1)


def _write_polars(layout: Layout, columns: Sequence[list[Value]]) -> Any:
    polars = _native("polars")

    def series(name: str | int, values: list[Value], dtype: dict[str, Any]) -> Any:
        options = {key: dtype[key] for key in ("time_unit", "time_zone", "categories") if key in dtype}
        kind = getattr(polars, dtype["dtype"])(**options)
        zone = options.pop("time_zone", None)
        if zone is None:
            return polars.Series(name, values, dtype=kind)
        naive = polars.Series(name, values, dtype=polars.Datetime(dtype["time_unit"]))
        return naive.dt.replace_time_zone(zone)

    return polars.DataFrame([series(*part) for part in zip(layout.labels, columns, layout.dtypes, strict=True)])


def _write_pyarrow(layout: Layout, columns: Sequence[list[Value]]) -> Any:
    pyarrow = _native("pyarrow")

    def array(values: list[Value], dtype: dict[str, Any]) -> Any:
        if dtype["dtype"] != "dictionary":
            return pyarrow.array(values, _arrow_type(dtype["dtype"]))
        codes = {value: code for code, value in enumerate(dtype["categories"])}
        indices = [None if value is None else codes[value] for value in values]
        dictionary = pyarrow.array(dtype["categories"], _arrow_type(dtype["values"]))
        index = pyarrow.array(indices, _arrow_type(dtype["indices"]))
        return pyarrow.DictionaryArray.from_arrays(index, dictionary, ordered=dtype["ordered"])

    arrays = [array(values, dtype) for values, dtype in zip(columns, layout.dtypes, strict=True)]
    return pyarrow.table(dict(zip(layout.labels, arrays, strict=True)))


def _arrow_type(name: str) -> Any:
    pyarrow = _native("pyarrow")
    if name.startswith("timestamp[") and "tz=" in name:
        unit, zone = name.removeprefix("timestamp[").removesuffix("]").split(", tz=")
        return pyarrow.timestamp(unit, zone)
    return pyarrow.type_for_alias(name)


def _write_numpy(layout: Layout, columns: Sequence[list[Value]]) -> np.ndarray:
    dtype = np.dtype(layout.dtypes[0]["dtype"])
    array = np.empty((len(columns[0]), len(columns)), dtype=dtype)
    empty = np.nan if dtype.kind == "f" else None
    for j, values in enumerate(columns):
        array[:, j] = [empty if value is None else value for value in values]
    return array


_DESCRIBE: dict[str, Callable[[Any, str], dict[str, Any]]] = {
    "pandas": _describe_pandas,
    "polars": _describe_polars,
    "pyarrow": _describe_pyarrow,
}
_WRITE: dict[str, Callable[[Layout, Sequence[list[Value]]], Any]] = {
    "pandas": _write_pandas,
    "polars": _write_polars,
    "pyarrow": _write_pyarrow,
    _NUMPY: _write_numpy,
}
