"""What is learned about one column before any training: its type, its categories or its range."""

import datetime
from collections import Counter
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, cast, get_args

import numpy as np

from tessella.estimators.values import Value, from_json, shown, to_json

Kind = Literal["categorical", "ordinal", "boolean", "count", "continuous", "date"]
NUMBERS: tuple[Kind, ...] = ("count", "continuous", "date")

FEW = 30  # integers with at most so many different values are categories with an order
REPEATED = 10  # so are other numbers, if each value comes so often on average
EXACT = 2**52  # integers beyond this are not exact in double precision


@dataclass(frozen=True)
class Column:
    """A column as training saw it.

    Args:
        name: its name.
        kind: its type.
        categories: for categorical, ordinal and boolean columns all values, `None` last where some were missing.
        frequencies: rows of each category; (missing, present) for numbers.
        low, high: range of the numbers.
        whole: the numbers are integers.
        instants: dates came as instants (date and time of day); what is modelled, and sampled, is the day.
    """

    name: str
    kind: Kind
    categories: tuple[Value, ...] = ()
    frequencies: tuple[int, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    instants: bool = False

    @property
    def number(self) -> bool:
        """Whether it is modelled as a number rather than as categories."""
        return self.kind in NUMBERS

    @property
    def missing(self) -> bool:
        """Whether training saw missing values."""
        return self.frequencies[0] > 0 if self.number else None in self.categories

    def encode(self, values: list[Value], unseen: str) -> np.ndarray:
        """Codes, or numbers with NaN where missing, (rows,)."""
        encoded = self._numbers(values) if self.number else self._codes(values, unseen)
        if self.number and not self.missing and np.isnan(encoded).any():
            row = int(np.isnan(encoded).argmax())
            raise ValueError(f"column {self.name!r}: the value of row {row} is missing; training saw none missing")
        return encoded

    def decode(self, encoded: np.ndarray) -> list[Value]:
        """The values of codes; of numbers, NaN where missing, kept inside the range that training saw."""
        if not self.number:
            return [self.categories[int(code)] for code in encoded]
        kept = np.clip(encoded, self.low, self.high)
        return [None if np.isnan(value) else self._value(float(value)) for value in kept]

    def to_json(self) -> dict[str, Any]:
        """The column in JSON's types."""
        return {**self.__dict__, "categories": to_json(self.categories)}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> "Column":
        """The column that `to_json` wrote."""
        categories, frequencies = tuple(from_json(said["categories"])), tuple(said["frequencies"])
        return cls(**{**said, "categories": categories, "frequencies": frequencies})

    def _codes(self, values: list[Value], unseen: str) -> np.ndarray:
        codes = {value: code for code, value in enumerate(self.categories)}
        instead = codes.get(None) if unseen == "missing" else None
        found = [codes.get(value, instead) for value in values]
        if None in found:
            raise ValueError(self._unknown(values[found.index(None)]))
        return np.array(found, dtype=np.float64)

    def _unknown(self, value: Value) -> str:
        known = f"{len(self.categories)} known: {shown(self.categories)}"
        kinds = {type(category) for category in self.categories if category is not None}
        kind = "" if value is None or type(value) in kinds else f"; this one is {type(value).__name__}"
        advice = 'drop the row or refit; unseen="missing" takes it for missing where training saw missing values'
        return f"column {self.name!r}: value {shown([value])} was not seen in training ({known}){kind}; {advice}"

    def _numbers(self, values: list[Value]) -> np.ndarray:
        expected, kinds = ("dates", (datetime.date,)) if self.kind == "date" else ("numbers", (int, float))
        for row, value in enumerate(values):
            if value is not None and not isinstance(value, kinds):
                what = f"{shown([value])} ({type(value).__name__}) in row {row}"
                raise TypeError(f"column {self.name!r}: got {what}; expected {expected}, since it is {self.kind}")
        numbers = np.array([np.nan if value is None else _number(value) for value in values], dtype=np.float64)
        self._check(numbers)
        return numbers

    def parse(self, text: str) -> Value:
        """The value that a text stands for: a category by what it prints as, a number, a date; nothing for missing."""
        if not text:
            return None
        if not self.number:
            return next((value for value in self.categories if str(value) == text), text)
        try:
            return datetime.date.fromisoformat(text) if self.kind == "date" else float(text)
        except ValueError:
            what = "a date like 2026-01-31" if self.kind == "date" else "a number"
            raise ValueError(f"column {self.name!r}: got {text!r}; expected {what}") from None

    def _check(self, numbers: np.ndarray) -> None:
        if np.isinf(numbers).any():
            row = int(np.isinf(numbers).argmax())
            raise ValueError(
                f"column {self.name!r}: the value of row {row} is infinite (infinity); expected finite numbers, "
                "or a missing value in its place"
            )
        broken = (numbers != np.round(numbers)) & ~np.isnan(numbers)
        if self.kind == "count" and broken.any():
            row = int(broken.argmax())
            raise ValueError(f"column {self.name!r}: got {numbers[row]} in row {row}; expected integers, it is a count")

    def _value(self, number: float) -> Value:
        if self.kind == "date":
            day = datetime.date.fromordinal(int(number))
            return datetime.datetime.combine(day, datetime.time()) if self.instants else day
        return round(number) if self.whole else number


def learn(name: str, values: list[Value], kind: str | None, order: list[Value] | None) -> Column:
    """The column of these training values; its type inferred where `kind` is None.

    Args:
        name: for messages.
        values: the training values.
        kind: one of `Kind`, or None.
        order: the order of the categories, where the frame's dtype has one.
    """
    present: list[Value] = [value for value in values if value is not None]
    if not present:
        raise ValueError(f"column {name!r}: all {len(values)} values are missing; drop the column")
    if kind is not None and kind not in get_args(Kind):
        raise ValueError(f"column_types[{name!r}]: got {kind!r}; expected one of {', '.join(get_args(Kind))}")
    chosen = cast(Kind, kind) if kind is not None else infer(present, order)
    missing = len(values) - len(present)
    return (
        _learn_number(name, present, chosen, missing)
        if chosen in NUMBERS
        else _learn_categories(name, present, chosen, missing, order)
    )


def infer(present: list[Value], order: list[Value] | None = None) -> Kind:
    """The type of a column from its values, none of them missing.

    >>> infer([True, False]), infer(["b", "a"]), infer(list(range(100))), infer([0.5, 0.25]), infer([1, 2, 2])
    ('boolean', 'categorical', 'count', 'continuous', 'ordinal')
    """
    kinds: set[type] = {type(value) for value in present}
    if order is not None:
        return "ordinal"
    if kinds == {bool}:
        return "boolean"
    if all(issubclass(kind, datetime.date) for kind in kinds):
        return "date" if len(set(present)) > 1 else "categorical"
    if not kinds <= {int, float, bool}:
        return "categorical"
    return _infer_number(np.array(present, dtype=np.float64))


def _infer_number(numbers: np.ndarray) -> Kind:
    different = len(np.unique(numbers))
    if not np.isfinite(numbers).all():
        return "continuous"  # where the infinity is reported
    whole = bool((numbers == np.round(numbers)).all() and (np.abs(numbers) < EXACT).all())
    if different <= FEW and (whole or different * REPEATED <= len(numbers) or different == 1):
        return "ordinal"
    return "count" if whole else "continuous"


def _learn_number(name: str, present: list[Value], kind: Kind, missing: int) -> Column:
    instants = any(isinstance(value, datetime.datetime) for value in present)
    numbers = Column(name, kind, frequencies=(missing, len(present)))._numbers(present)
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        raise ValueError(
            f"column {name!r}: all values are {shown(present[:1])}; a {kind} column needs at least two different ones, "
            'declare it "categorical" or drop it'
        )
    whole = kind == "count" or all(isinstance(value, int) for value in present)
    return Column(name, kind, frequencies=(missing, len(present)), low=low, high=high, whole=whole, instants=instants)


def _learn_categories(name: str, present: list[Value], kind: Kind, missing: int, order: list[Value] | None) -> Column:
    counts = Counter(present)
    infinite = [value for value in counts if isinstance(value, float) and not isfinite(value)]
    if infinite:
        raise ValueError(f"column {name!r}: got {infinite[0]} (infinity); expected finite numbers or missing values")
    if kind == "boolean" and len(counts) > 2:
        raise ValueError(f"column {name!r}: got {len(counts)} different values; expected two, since it is boolean")
    places = {value: place for place, value in enumerate(order or [])}
    categories = sorted(counts, key=places.__getitem__) if order else sorted(counts, key=_sorting)
    frequencies = [counts[value] for value in categories] + ([missing] if missing else [])
    return Column(name, kind, (*categories, *([None] if missing else [])), tuple(frequencies))


def _sorting(value: Value) -> tuple[int, Any]:
    ranks = [(bool | int | float, 0), (str, 1), (datetime.datetime, 2), (datetime.date, 3)]
    return next((rank, value) for kind, rank in ranks if isinstance(value, kind))


def _number(value: Any) -> float:
    return float(value.toordinal()) if isinstance(value, datetime.date) else float(value)
