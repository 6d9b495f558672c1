"""Dates and instants as numbers: milliseconds since the day before the first of January of the year 1, day 0."""

import datetime
from collections.abc import Sequence

from tessella.data.tables.values import Value

DAY = 86_400_000  # milliseconds
UNITS = {"days": DAY, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000, "milliseconds": 1}
STEPS = tuple(length / DAY for length in UNITS.values())
FIRST, LAST = DAY, DAY * (datetime.date.max.toordinal() + 1) - 1


def milliseconds(value: datetime.date) -> int:
    """Of a date, its midnight; of an instant what its clock shows, without what is less than a millisecond.

    >>> milliseconds(datetime.datetime(1, 1, 1, 0, 0, 2)) - milliseconds(datetime.date(1, 1, 1))
    2000
    """
    clock = 0
    if isinstance(value, datetime.datetime):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        clock = 1000 * seconds + value.microsecond // 1000
    return DAY * value.toordinal() + clock


def instant(number: float) -> datetime.datetime:
    """The inverse of `milliseconds`."""
    return datetime.datetime.min + datetime.timedelta(milliseconds=int(number) - DAY)


def date_step(values: Sequence[Value]) -> float:
    """The longest of a day, an hour, a minute, a second and a millisecond that the instants are multiples of, in days.

    >>> date_step([datetime.datetime(2026, 1, 31, 10, 30)]) * 24 * 60
    1.0
    """
    numbers = {milliseconds(value) for value in values if isinstance(value, datetime.date)}
    return next(length / DAY for length in UNITS.values() if not any(number % length for number in numbers))


def unit(step: float) -> int:
    """The milliseconds of a step in days."""
    return round(step * DAY)


def unit_name(step: float) -> str:
    """What it is called.

    >>> unit_name(1.0), unit_name(1 / 24)
    ('days', 'hours')
    """
    return {length: name for name, length in UNITS.items()}[unit(step)]


def from_iso(text: str) -> datetime.date:
    """A date, or an instant where the text has a time of day.

    >>> from_iso("2026-01-31"), from_iso("2026-01-31 10:30")
    (datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 10, 30))
    """
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return datetime.datetime.fromisoformat(text)
