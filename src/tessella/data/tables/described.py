"""An encoding from a file that anybody may have changed: every field is looked at before it is used."""

from itertools import pairwise
from math import isfinite
from typing import Any, get_type_hints

from tessella.configs import checked
from tessella.data.tables.columns import Column
from tessella.data.tables.dates import FIRST, LAST, STEPS, unit
from tessella.data.tables.encoding import Encoding
from tessella.data.tables.values import PLAIN, shown

_LISTS = ("categories", "frequencies", "atoms")


def read_encoding(said: Any) -> Encoding:
    """The encoding that `Encoding.to_json` wrote, or a ValueError that names the column."""
    if not isinstance(said, list) or not said or not all(isinstance(one, dict) for one in said):
        raise ValueError(f"columns: got {said!r:.80}; expected a list of objects, one for each column")
    hints = get_type_hints(Column)
    for one in said:
        for name in hints.keys() & one.keys() - {"categories"}:
            checked(hints[name], tuple(one[name]) if name in _LISTS else one[name], name)
    encoding = Encoding.from_json(said)
    for column in encoding.columns:
        _check(column)
    names = [column.name for column in encoding.columns]
    if len(set(names)) < len(names):
        raise ValueError(f"columns: got the names {shown(names)}; expected different ones")
    return encoding


def _check(column: Column) -> None:
    """What a column says about itself is possible."""
    counted = 2 + len(column.atoms) if column.number else len(column.categories)
    if len(column.frequencies) not in (0, counted) or min(column.frequencies, default=0) < 0:
        _refuse(column, f"frequencies ({shown(column.frequencies)})", f"none, or {counted} that are not negative")
    if column.frequencies and not sum(column.frequencies):
        _refuse(column, "frequencies that are all 0", "some rows")
    if not all(value is None or isinstance(value, PLAIN) for value in column.categories):
        _refuse(column, f"categories ({shown(column.categories)})", "booleans, numbers, text or dates")
    if not column.number:
        return
    if column.categories:
        _refuse(column, f"categories ({shown(column.categories)})", f"none, since it is {column.kind}")
    if not (isfinite(column.low) and isfinite(column.high) and column.low <= column.high):
        _refuse(column, f"the range {column.low} to {column.high}", "a finite one")
    if not (isfinite(column.step) and column.step > 0) or (column.kind == "date" and column.step not in STEPS):
        what = "a day, hour, minute, second or millisecond, in days" if column.kind == "date" else "a positive number"
        _refuse(column, f"the step {column.step}", what)
    if column.kind == "date" and not FIRST <= column.low * unit(column.step) <= column.high * unit(column.step) <= LAST:
        _refuse(column, f"the range {column.low} to {column.high}", "days that there are")
    rising = all(a < b for a, b in pairwise(column.atoms)) and all(map(isfinite, column.atoms))
    if not rising or (column.atoms and column.kind != "continuous"):
        _refuse(column, f"the atoms {shown(column.atoms)}", "rising numbers, of a continuous column")


def _refuse(column: Column, got: str, expected: str) -> None:
    raise ValueError(f"column {column.name!r}: got {got}; expected {expected}")
