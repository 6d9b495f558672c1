"""Columns of plain Python values -> frames of any library, with the labels and dtypes of a `Layout`."""

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from tessella.data.tables.values import Value
from tessella.estimators.frames.frame import NUMPY, Layout, module_of

_POLARS_OPTIONS = ("time_unit", "time_zone", "categories", "precision", "scale")


def write(layout: Layout, columns: Sequence[list[Value]]) -> Any:
    """A frame of this layout; pandas gets a fresh index."""
    return _WRITE[layout.library](layout, columns)


def write_new(library: str, columns: dict[str, list[Any]]) -> Any:
    """A frame of any columns; for arrays a structured array."""
    if library == NUMPY:
        arrays = {name: np.array(values) for name, values in columns.items()}
        rows = list(zip(*columns.values(), strict=True))
        return np.array(rows, dtype=[(name, array.dtype) for name, array in arrays.items()])
    return nw.from_dict(columns, backend=module_of(library)).to_native()


def _write_pandas(layout: Layout, columns: Sequence[list[Value]]) -> Any:
    pandas = module_of("pandas")

    def series(values: list[Value], dtype: dict[str, Any]) -> Any:
        if dtype["dtype"].startswith("decimal"):  # pandas does not know such a name
            kind = pandas.ArrowDtype(_arrow_type(dtype["dtype"].removesuffix("[pyarrow]")))
            return pandas.Series(values, dtype="double[pyarrow]").astype(kind)
        if dtype["dtype"] != "category":
            return pandas.Series(values, dtype=dtype["dtype"])
        kind = pandas.CategoricalDtype(dtype["categories"], dtype["ordered"])
        return pandas.Series(values, dtype=kind)

    parts = [series(values, dtype) for values, dtype in zip(columns, layout.dtypes, strict=True)]
    return pandas.concat(parts, axis=1, keys=range(len(parts))).set_axis(list(layout.labels), axis=1)


def _write_polars(layout: Layout, columns: Sequence[list[Value]]) -> Any:
    polars = module_of("polars")

    def series(name: str | int, values: list[Value], dtype: dict[str, Any]) -> Any:
        options = {key: dtype[key] for key in _POLARS_OPTIONS if key in dtype}
        kind = getattr(polars, dtype["dtype"])(**options)
        if "scale" in options:
            return polars.Series(name, values, dtype=polars.Float64).cast(kind)
        zone = options.pop("time_zone", None)
        if zone is None:
            return polars.Series(name, values, dtype=kind)
        naive = polars.Series(name, values, dtype=polars.Datetime(dtype["time_unit"]))
        return naive.dt.replace_time_zone(zone)

    return polars.DataFrame([series(*part) for part in zip(layout.labels, columns, layout.dtypes, strict=True)])


def _write_pyarrow(layout: Layout, columns: Sequence[list[Value]]) -> Any:
    pyarrow = module_of("pyarrow")

    def array(values: list[Value], dtype: dict[str, Any]) -> Any:
        if dtype["dtype"].startswith("decimal"):
            return pyarrow.array(values, pyarrow.float64()).cast(_arrow_type(dtype["dtype"]))
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
    pyarrow = module_of("pyarrow")
    if name.startswith("timestamp[") and "tz=" in name:
        unit, zone = name.removeprefix("timestamp[").removesuffix("]").split(", tz=")
        return pyarrow.timestamp(unit, zone)
    if name.startswith("decimal"):
        kind, _, sizes = name.removesuffix(")").partition("(")
        return getattr(pyarrow, kind)(*map(int, sizes.split(",")))
    return pyarrow.type_for_alias(name)


def _write_numpy(layout: Layout, columns: Sequence[list[Value]]) -> np.ndarray:
    dtype = np.dtype(layout.dtypes[0]["dtype"])
    array = np.empty((len(columns[0]), len(columns)), dtype=dtype)
    empty = np.nan if dtype.kind == "f" else None
    for j, values in enumerate(columns):
        array[:, j] = [empty if value is None else value for value in values]
    return array


_WRITE: dict[str, Callable[[Layout, Sequence[list[Value]]], Any]] = {
    "pandas": _write_pandas,
    "polars": _write_polars,
    "pyarrow": _write_pyarrow,
    NUMPY: _write_numpy,
}
