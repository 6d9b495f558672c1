"""Values as a page shows them."""

import datetime

from tessella.data.tables.values import Value


def text(value: Value) -> str:
    """A value in a few characters.

    >>> [text(value) for value in (None, True, 3, 12345.678, 1e-7, "red", datetime.date(2020, 1, 2))]
    ['missing', 'true', '3', '12,346', '1e-07', 'red', '2020-01-02']
    """
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
    if isinstance(value, datetime.date):
        return f"{value:%Y-%m-%d}"
    return str(value)
