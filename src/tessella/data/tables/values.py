"""The plain values a cell can hold, how messages show them, and how JSON keeps them."""

import datetime
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, cast

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


def nearest(value: Any, known: Iterable[Any]) -> str:
    """For the end of a message: the known text that is most like a text, if one is.

    >>> nearest("colour", ["color", "size"]), nearest("age", ["size"])
    ("; did you mean 'color'?", '')
    >>> nearest("SEX", ["age", "sex"])
    "; did you mean 'sex'?"
    """
    texts = {other.lower(): other for other in known if isinstance(other, str)}
    found = get_close_matches(value[:_LONGEST].lower(), texts, 1) if isinstance(value, str) else []
    return f"; did you mean {shown([texts[one] for one in found])}?" if found else ""


def printed(value: Value) -> str:
    """A value as CSV files have it.

    >>> printed(True), printed(2.5), printed(None)
    ('true', '2.5', '')
    """
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


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
        return cast(Value, value)
    if "instant" in value:
        return datetime.datetime.fromisoformat(value["instant"])
    return datetime.date.fromisoformat(value["date"])
