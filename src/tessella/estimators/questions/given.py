"""What a question takes for granted: values of some columns, limits of others."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import torch

from tessella.data import Column, Encoding
from tessella.data.tables.cells import CellError
from tessella.data.tables.dates import DAY, unit
from tessella.data.tables.limits import Limit
from tessella.data.tables.values import Value, shown
from tessella.estimators.frames import plain_value

ROUNDING = 1e-6  # of a step: 0.7 / 0.1 is 7


@dataclass(frozen=True)
class Given:
    """By the columns of the table, none of which has a single value."""

    values: dict[int, list[float]]
    """As they stand in a row, one number for each token of the column."""
    limits: dict[int, Limit]

    def __bool__(self) -> bool:
        return bool(self.values or self.limits)


def read_given(encoding: Encoding, said: Mapping[str, Any]) -> Given:
    """Conditions by name: a value, (low, high) for numbers and what has an order, a list of categories.

    Conditions on columns with a single value are checked, and met anyway.
    """
    values: dict[int, list[float]] = {}
    limits: dict[int, Limit] = {}
    for name, value in said.items():
        index = encoding.index(name)
        column = encoding.columns[index]
        if _is_day(column, value):
            value = (value, value)
        if isinstance(value, tuple | list | set | frozenset):
            limit = _interval(column, value) if isinstance(value, tuple) else _some(column, list(value))
            limits |= {index: limit} if encoding.tokens(index) else {}
        else:
            code = _possible(column, plain_value(value))
            values |= {index: encoding.place(index, np.array([code]))[0].tolist()} if encoding.tokens(index) else {}
    return Given(values, limits)


def _possible(column: Column, value: Value) -> float:
    """The code or number of a value that the model can make."""
    try:
        code = float(column.encode([value], "error")[0])
    except CellError as error:
        why = f"column {column.name!r}: {error.objection}"
        raise ValueError(f"given: impossible, probability 0, the model never makes such a row: {why}") from None
    if column.number and (code < column.low or code > column.high):
        raise ValueError(f"given: {_beyond(column, shown([value]))}")
    return code


def _beyond(column: Column, what: str) -> str:
    bounds = shown(column.decode(np.array([column.low, column.high])))
    return f"column {column.name!r}: {what} is impossible, training saw values between {bounds}"


def _some(column: Column, values: list[Any]) -> Limit:
    """Some of the categories."""
    if column.number or not values:
        what = "a list of values" if values else "no values"
        expected = "(low, high), since it is a number" if column.number else "at least one category"
        raise ValueError(f"given: column {column.name!r}: got {what}; expected {expected}")
    codes = [int(_possible(column, plain_value(value))) for value in values]
    allowed = torch.zeros(len(column.categories), dtype=torch.bool)
    allowed[codes] = True
    return Limit.categories(allowed)


def _interval(column: Column, ends: tuple[Any, ...]) -> Limit:
    """Numbers, or ordered categories, from one end to the other, both included; None is no end."""
    if len(ends) != 2 or column.kind in ("categorical", "boolean"):
        some = f"a list of its categories, since it is {column.kind}"
        expected = "(low, high)" if column.number or column.kind == "ordinal" else some
        raise ValueError(f"given: column {column.name!r}: got {ends!r}; expected {expected}")
    low, high = (plain_value(end) for end in ends)
    if not column.number:
        return _ordered(column, low, high)
    first = -inf if low is None else _steps(column, low)
    last = inf if high is None else _steps(column, high) + _rest_of_day(column, high)
    if first > last or first > column.high or last < column.low:
        raise ValueError(f"given: {_beyond(column, f'between {low} and {high}')}")
    # Draws beyond what training saw are put at the ends of that, so these belong to an interval which holds them.
    first, last = -inf if first <= column.low else first, inf if last >= column.high else last
    return Limit.between(column, torch.tensor([first]).double(), torch.tensor([last]).double())


def _is_day(column: Column, value: Any) -> bool:
    """Whether it is a date without a time of day, where the column has one: all instants of that day are meant."""
    day = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    return day and column.kind == "date" and column.step < 1


def _rest_of_day(column: Column, value: Any) -> int:
    """Steps of a day after its first."""
    return DAY // unit(column.step) - 1 if _is_day(column, value) else 0


def _ordered(column: Column, low: Value, high: Value) -> Limit:
    """Categories by their order; numbers need not be among them, other ends do."""
    known = [category for category in column.categories if category is not None]
    if all(isinstance(one, int | float) for one in [*known, *(end for end in (low, high) if end is not None)]):
        ends = (-inf if low is None else low, inf if high is None else high)
        inside = [ends[0] <= one <= ends[1] for one in known]  # type: ignore[operator]  # all are numbers
    else:
        first, last = 0.0 if low is None else _possible(column, low), inf if high is None else _possible(column, high)
        inside = [first <= place <= last for place in range(len(known))]
    if not any(inside):
        raise ValueError(f"given: column {column.name!r}: no category is between {low!r} and {high!r}: probability 0")
    return Limit.categories(torch.tensor(inside + [False] * column.missing))


def _steps(column: Column, value: Value) -> float:
    """A value of a column of numbers in steps; it need not be on the grid."""
    if isinstance(value, datetime.date) != (column.kind == "date") or isinstance(value, str):
        what = "dates" if column.kind == "date" else "numbers"
        raise ValueError(f"given: column {column.name!r}: got {shown([value])}; expected {what}, low and high")
    if isinstance(value, datetime.date):
        return float(column.encode([value])[0])
    assert value is not None
    steps = float(value) / column.step
    return float(round(steps)) if abs(steps - round(steps)) < ROUNDING and column.discrete else steps
