"""What is learned about one column before any training: its type, its categories or its range and what it is made of.

Numbers are neither discrete nor continuous: 92% zeros and a tail, prices on a grid of 0.01. So a column of numbers has
masses on a grid (integers, days, minutes, multiples of 10^-d), or a density and masses on its atoms, the values that
repeat. Everything that scores a table measures it so.
"""

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import inf, isfinite, isinf, nan
from typing import Any, Literal, cast, get_args

import numpy as np

from tessella.data.tables.cells import CellError, Cells, Coded, as_numbers, coded, plain
from tessella.data.tables.dates import date_step, from_iso, instant, unit, unit_name
from tessella.data.tables.grids import DIGITS, EXACT, atoms_of, grid_step, on_grid, tied
from tessella.data.tables.values import Value, from_json, nearest, printed, shown, to_json

Kind = Literal["categorical", "ordinal", "boolean", "count", "grid", "continuous", "date"]
NUMBERS: tuple[Kind, ...] = ("count", "grid", "continuous", "date")

FEW = 30  # integers with at most so many different values are categories with an order
MOST_CATEGORIES = 20_000  # that a column may have: each has a vector and a probability in every row
MOST_DECLARED = 2**21  # where somebody says that they are categories, and knows what that costs
REPEATED = 10  # so are other numbers, if each value comes so often on average


@dataclass(frozen=True)
class Column:
    """A column as training saw it.

    Args:
        name: its name.
        kind: its type.
        categories: for categorical, ordinal and boolean columns all values, `None` last where some were missing.
        frequencies: rows of each category; for numbers those that are missing, those that are present and no atom, and
            those of each atom. Empty where nothing was counted.
        low, high: range of the numbers, in steps.
        whole: the numbers are integers.
        instants: dates came as instants (date and time of day).
        step: all numbers of a count, grid or date column are multiples of it; encoded, they are integers. Of dates it
            is in days, and an instant between two steps counts as the first.
        atoms: values of a continuous column that repeat, rising; they have masses, the others a density.
    """

    name: str
    kind: Kind
    categories: tuple[Value, ...] = ()
    frequencies: tuple[int, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    instants: bool = False
    step: float = 1.0
    atoms: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.number and not 0 < len(self.categories) == len(set(self.categories)):
            got = f"categories ({shown(self.categories)})"
            raise ValueError(f"column {self.name!r}: got {got}; expected at least one, all different")

    @property
    def number(self) -> bool:
        """Whether it is modelled as a number rather than as categories."""
        return self.kind in NUMBERS

    @cached_property
    def named(self) -> dict[str, Value]:
        """The categories that are there, by what they print as."""
        return {printed(value): value for value in self.categories if value is not None}

    @cached_property
    def missing(self) -> bool:
        """Whether training saw missing values."""
        return sum(self.frequencies[:1]) > 0 if self.number else None in self.categories

    @property
    def discrete(self) -> bool:
        """Whether its numbers are masses on a grid."""
        return self.number and self.kind != "continuous"

    @property
    def states(self) -> tuple[float, ...]:
        """What a number's indicator says: NaN for missing or an atom, and at code 1 infinity, for "see the number"."""
        return self._by_code(nan, inf, self.atoms)

    @property
    def state_frequencies(self) -> tuple[float, ...]:
        """Rows in each of these states; all 0 where nothing was counted."""
        missing, present, *atoms = self.frequencies or (0,) * (2 + len(self.atoms))
        return self._by_code(missing, present, atoms)

    @property
    def measure(self) -> str:
        """What its likelihood is made of, in words; nothing for categories.

        >>> Column("x", "grid", step=0.01).measure, Column("x", "continuous", atoms=(0.0,)).measure
        ('masses on multiples of 0.01', 'a density, and a mass on 1 value')
        """
        if self.kind == "continuous":
            values = "1 value" if len(self.atoms) == 1 else f"{len(self.atoms)} values"
            return f"a density, and a mass on {values}" if self.atoms else "a density"
        if self.kind == "date":
            return f"masses on {unit_name(self.step)}"
        grids = {"count": "integers", "grid": f"multiples of {self.step:g}"}
        return f"masses on {grids[self.kind]}" if self.number else ""

    def encode_cells(self, cells: Cells) -> np.ndarray:
        """`encode` of a piece's cells, where each value is looked up once."""
        if self.number and not isinstance(cells, Coded):
            return self._accepted(cells, *self._encoded(cells, "error"))
        found = coded(cells)
        return np.take(self.encode(found.values), found.place)

    def encode(self, values: Sequence[Value], unseen: str = "error") -> np.ndarray:
        """Codes, or numbers in steps with NaN where missing, (rows,); the first value that cannot be is an error."""
        return self._accepted(values, *self._encoded(values, unseen))

    def _accepted(self, values: Sequence[Value] | np.ndarray, encoded: np.ndarray, refused: np.ndarray) -> np.ndarray:
        """What was encoded, if nothing was refused."""
        if refused.any():
            row = int(refused.argmax())
            value = plain(values[row : row + 1])[0] if isinstance(values, np.ndarray) else values[row]
            raise CellError(self.name, row, self._objection(value))
        return encoded

    def refused(self, values: Sequence[Value], unseen: str = "error") -> np.ndarray:
        """Which of the values the column cannot have, (rows,)."""
        return self._encoded(values, unseen)[1]

    def decode(self, encoded: np.ndarray) -> list[Value]:
        """The values of codes; of numbers in steps, NaN where missing, kept inside the range that training saw."""
        if not self.number:
            return [self.categories[code] for code in encoded.astype(np.int64).tolist()]
        kept = np.clip(encoded, self.low, self.high)
        gone = np.isnan(kept)
        values = self._values(np.where(gone, self.low, kept))
        for row in gone.nonzero()[0].tolist():
            values[row] = None
        return values

    def to_json(self) -> dict[str, Any]:
        """The column in JSON's types."""
        lists = {"frequencies": list(self.frequencies), "atoms": list(self.atoms)}
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**own, **lists, "categories": to_json(self.categories)}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> "Column":
        """The column that `to_json` wrote."""
        tuples = {name: tuple(said.get(name, ())) for name in ("frequencies", "atoms")}
        return cls(**{**said, **tuples, "categories": tuple(from_json(said["categories"]))})

    def _by_code(self, missing: float, present: float, atoms: Sequence[float]) -> tuple[float, ...]:
        """Code 1 is always that the number is there, so that no code stands for what cannot be."""
        apart = (*[missing] * self.missing, *atoms)
        return (*apart[:1], present, *apart[1:])

    def _encoded(self, values: Sequence[Value] | np.ndarray, unseen: str) -> tuple[np.ndarray, np.ndarray]:
        """Values encoded, and which of them mean nothing."""
        if not self.number:
            codes = {value: code for code, value in enumerate(self.categories)}
            instead = codes.get(None) if unseen == "missing" else None
            found = np.array([codes.get(value, instead) for value in values], dtype=np.float64)  # None is NaN
            return found, np.isnan(found)
        numbers, alien = as_numbers(values, dates=self.kind == "date")
        refused = alien | np.isinf(numbers) | (~alien & np.isnan(numbers) & (not self.missing))
        if self.kind in ("count", "grid"):
            with np.errstate(invalid="ignore"):
                there = numbers == np.round(numbers) if self.kind == "count" else on_grid(numbers, self.step)
            refused |= ~there & ~np.isnan(numbers)
        if self.kind == "date":
            return numbers // unit(self.step), refused
        return (np.round(numbers / self.step) if self.discrete else numbers), refused

    def _objection(self, value: Value) -> str:
        """What is wrong with a value that is refused."""
        if not self.number:
            return self._unknown(value)
        if value is None:
            return "is missing; training saw none missing"
        expected, kinds = ("dates", (datetime.date,)) if self.kind == "date" else ("numbers", (int, float))
        if not isinstance(value, kinds):
            return f"got {shown([value])} ({type(value).__name__}); expected {expected}, since it is {self.kind}"
        if isinstance(value, float) and isinf(value):
            return "is infinite (infinity); expected finite numbers, or a missing value in its place"
        grid = f'multiples of {self.step:g}; declare it "continuous" if other numbers can come'
        return f"got {value}; expected " + ("integers, it is a count" if self.kind == "count" else grid)

    def _unknown(self, value: Value) -> str:
        known = f"{len(self.categories)} known: {shown(self.categories)}"
        kinds = {type(category) for category in self.categories if category is not None}
        kind = "" if value is None or type(value) in kinds else f"; this one is {type(value).__name__}"
        near = nearest(value, self.categories)
        advice = 'drop the row or refit; unseen="missing" takes it for missing where training saw missing values'
        return f"value {shown([value])} was not seen in training ({known}){kind}{near}; {advice}"

    def parse(self, text: str) -> Value:
        """The value that a text stands for: a category by what it prints as, a number, a date; nothing for missing."""
        if not text:
            return None
        if not self.number:
            return self.named.get(text, self.named.get(text.lower(), text) if self.kind == "boolean" else text)
        try:
            return from_iso(text) if self.kind == "date" else float(text)
        except ValueError:
            what = "a date like 2026-01-31, or with a time of day" if self.kind == "date" else "a number"
            raise ValueError(f"column {self.name!r}: got {text!r}; expected {what}") from None

    def _values(self, numbers: np.ndarray) -> list[Value]:
        """Of numbers in steps, all of them there."""
        if self.kind == "date":
            different, place = np.unique(numbers * unit(self.step), return_inverse=True)
            found = [instant(one) if self.instants else instant(one).date() for one in different.tolist()]
            return [found[i] for i in place.tolist()]
        if self.kind == "grid":  # a quotient is the nearest number to n / 10^d; a product with 10^-d need not be
            return list((numbers / round(1 / self.step)).tolist())
        return [round(number) for number in numbers.tolist()] if self.whole else list(numbers.tolist())


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
        raise all_missing(name, len(values))
    if kind is not None and kind not in get_args(Kind):
        raise ValueError(f"column_types[{name!r}]: got {kind!r}; expected one of {', '.join(get_args(Kind))}")
    chosen = cast(Kind, kind) if kind is not None else infer(present, order)
    missing = len(values) - len(present)
    if chosen in NUMBERS:
        return _learn_number(name, present, chosen, missing)
    most = MOST_CATEGORIES if kind is None else MOST_DECLARED
    return _learn_categories(name, present, chosen, missing, order, most)


def infer(present: list[Value], order: list[Value] | None = None) -> Kind:
    """The type of a column from its values, none of them missing.

    >>> infer([True, False]), infer(["b", "a"]), infer(list(range(100))), infer([0.5, 0.25]), infer([1, 2, 2])
    ('boolean', 'categorical', 'count', 'continuous', 'ordinal')
    >>> infer([i / 100 for i in range(100)] * 2)
    'grid'
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
    if whole:
        return "count"
    return "grid" if tied(numbers) and grid_step(numbers) else "continuous"


def _step(name: str, present: list[Value]) -> float:
    numbers = Column(name, "continuous", frequencies=(0, 1)).encode(present)
    step = grid_step(numbers)
    if not step:
        off = numbers[~on_grid(numbers, 10.0**-DIGITS)][0]
        expected = f'multiples of 1, 0.1, ... or {10.0**-DIGITS:g}; declare it "continuous"'
        raise ValueError(f"column {name!r}: got {off}; expected {expected}")
    return step


def _learn_number(name: str, present: list[Value], kind: Kind, missing: int) -> Column:
    instants = any(isinstance(value, datetime.datetime) for value in present)
    step = _step(name, present) if kind == "grid" else date_step(present) if kind == "date" else 1.0
    numbers = Column(name, kind, frequencies=(missing, len(present)), step=step).encode(present)
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        raise ValueError(
            f"column {name!r}: all values are {shown(present[:1])}; a {kind} column needs at least two different ones, "
            'declare it "categorical" or drop it'
        )
    whole = kind == "count" or all(isinstance(value, int) for value in present)
    atoms = atoms_of(numbers) if kind == "continuous" else {}
    frequencies = (missing, len(present) - sum(atoms.values()), *atoms.values())
    return Column(name, kind, (), frequencies, low, high, whole, instants, step, tuple(atoms))


def all_missing(name: str, rows: int) -> ValueError:
    """That a column has no value."""
    return ValueError(f"column {name!r}: all {rows} values are missing; drop the column")


def too_many(name: str, got: str, most: int) -> ValueError:
    """That a column has more categories than it may have."""
    advice = 'leave the column out, or join rare values into one; declared "categorical", it may have more'
    if most >= MOST_DECLARED:
        advice = "leave the column out, or join rare values into one"
    return ValueError(f"column {name!r}: got {got} different values; expected at most {most:,} categories: {advice}")


def _learn_categories(
    name: str, present: list[Value], kind: Kind, missing: int, order: list[Value] | None, most: int
) -> Column:
    counts = Counter(present)
    if len(counts) > most:
        raise too_many(name, f"{len(counts):,}", most)
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
