"""The plain values a cell can hold, how messages show them, and how JSON keeps them."""

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

Value = bool | int | float | str | datetime.date | None
"""None is a missing value. A `datetime.datetime` is a `datetime.date`, too."""

PLAIN = (bool, int, float, str, datetime.date)

_LONGEST = 40
_SHOWN = 6


def shown(values: Sequence[Any]) -> str:
    """Values for a message: long ones shortened, many of them cut.

    >>> shown(["a", None, "b" * 1000])
    "'a', missing, 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'... (1,000 characters)"
    """
    return ", ".join(map(_one, values[:_SHOWN])) + (", ..." if len(values) > _SHOWN else "")


def _one(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]!r}... ({len(value):,} characters)"
    text = repr(value)
    return text if len(text) <= 2 * _LONGEST else f"{text[:_LONGEST]}..."


def to_json(values: Iterable[Value]) -> list[Any]:
    """Values in JSON's types; dates as {"date": ...} and instants as {"instant": ...}.

    >>> from_json(to_json([1, 1.0, True, "1", None, datetime.date(2020, 1, 2)]))
    [1, 1.0, True, '1', None, datetime.date(2020, 1, 2)]
    """
    return [_to_json(value) for value in values]


def from_json(values: Iterable[Any]) -> list[Value]:
    """The values that `to_json` wrote."""
    return [_from_json(value) for value in values]


def _to_json(value: Value) -> Any:
    if isinstance(value, datetime.datetime):
        return {"instant": value.isoformat()}
    return {"date": value.isoformat()} if isinstance(value, datetime.date) else value


def _from_json(value: Any) -> Value:
    if not isinstance(value, dict):
        return value
    if "instant" in value:
        return datetime.datetime.fromisoformat(value["instant"])
    return datetime.date.fromisoformat(value["date"])
