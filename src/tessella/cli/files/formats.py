"""What the texts of a column's cells mean: booleans, integers, numbers, dates, or themselves."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["boolean", "integer", "number", "date", "instant", "text"]

MISSING = (
    "",
    "?",
    "-",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "NaN",
    "nan",
    "NAN",
    "-nan",
    "-NaN",
    "NULL",
    "null",
    "None",
    "none",
)
"""What stands for a missing value in columns of anything but text; there, only nothing does."""
_WHOLE = "0|[1-9][0-9]{0,17}"  # what is longer, or begins with 0, is a name
TIME = r"[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)? ?(?:Z|[+-]\d{2}:?\d{2})?"
PARTS = {"y": r"(?P<year>\d{4})", "m": r"(?P<month>\d{1,2})", "d": r"(?P<day>\d{1,2})"}
DATED: tuple[Kind, ...] = ("date", "instant")
ORDERS = {"ymd": "year first", "dmy": "day first", "mdy": "month first"}


@dataclass(frozen=True)
class CellFormat:
    """How values of one kind are written.

    Args:
        kind: what the cells are.
        decimal: of numbers, what stands before the fraction.
        thousands: of numbers, what parts groups of three digits.
        order: of dates, which of year, month and day comes first.
        separator: of dates, what stands between them.
    """

    kind: Kind
    decimal: str = "."
    thousands: str = ""
    order: str = "ymd"
    separator: str = "-"

    @property
    def plain(self) -> bool:
        """Whether it needs no mention."""
        if self.kind in DATED:
            return (self.order, self.separator) == ("ymd", "-")
        return not self.thousands and self.decimal == "."

    @property
    def style(self) -> str:
        """ "," where a comma is decimal, "." where a point is; nothing where nobody can tell."""
        if self.kind == "number":
            return self.decimal
        return {",": ".", ".": ","}.get(self.thousands, "")

    def __str__(self) -> str:
        if self.kind in DATED:
            return f"dates, {ORDERS[self.order]}, with {self.separator!r}"
        parted = f", thousands parted by {self.thousands!r}" if self.thousands else ""
        return f"numbers with a decimal {self.decimal!r}{parted}" if self.kind == "number" else f"integers{parted}"

    @property
    def expected(self) -> str:
        """What a cell should be, for messages."""
        number = "a number" if self.decimal == "." else f"a number with a decimal {self.decimal!r}, as in training"
        plain = {"boolean": "true or false", "integer": "an integer", "number": number}
        return plain.get(self.kind) or f"a date like {self.separator.join(_EXAMPLE[part] for part in self.order)}"

    def parse(self, texts: "pa.ChunkedArray") -> "pa.ChunkedArray":
        """The values of texts; null for what is missing or is not understood."""
        import pyarrow.compute as pc

        if self.kind == "text":
            return texts
        trimmed = pc.utf8_trim_whitespace(texts)
        understood = pc.match_substring_regex(trimmed, self._pattern, ignore_case=self.kind in ("boolean", "number"))
        kept = pc.if_else(understood, trimmed, None)
        if self.kind == "boolean":
            return pc.equal(pc.utf8_lower(kept), "true")
        return self._numbers(kept) if self.kind in ("integer", "number") else self._dates(kept)

    def misread(self, texts: "pa.ChunkedArray", parsed: "pa.ChunkedArray") -> int | None:
        """The first text, not one of those that stand for missing, of which nothing became."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.kind == "text" or parsed.null_count == texts.null_count:
            return None
        gone = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=pa.array(MISSING))
        lost = pc.and_(pc.and_(pc.is_null(parsed), pc.is_valid(texts)), pc.invert(gone))
        place = pc.index(lost, True).as_py()
        return None if place < 0 else int(place)

    def to_json(self) -> dict[str, Any]:
        """The format in JSON's types."""
        return asdict(self)

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Self:
        """The format that `to_json` wrote, which is one that is looked for."""
        found = cls(**said)
        if found not in [TEXT, *(one for family in FORMATS.values() for one in family)]:
            raise ValueError(f"format: got {dict(said)}; expected one that `tessella fit` knows")
        return found

    @cached_property
    def _pattern(self) -> str:
        if self.kind == "boolean":
            return "^(true|false)$"
        if self.kind in DATED:
            between, time = f"[{self.separator}]", f"(?:{TIME})?" if self.kind == "instant" else ""
            return f"^{between.join(PARTS[part] for part in self.order)}{time}$"
        point = f"[{self.decimal}]"
        parted = f"[1-9][0-9]{{0,2}}([{self.thousands}][0-9]{{3}}){{1,5}}|" if self.thousands else ""
        if self.kind == "integer":
            return f"^[+-]?({parted}{_WHOLE})$"
        digits = f"(({parted}{_WHOLE})({point}[0-9]*)?|{point}[0-9]+)"
        return f"^[+-]?({digits}(e[+-]?[0-9]+)?|inf|infinity)$"

    def _numbers(self, texts: "pa.ChunkedArray") -> "pa.ChunkedArray":
        import pyarrow as pa
        import pyarrow.compute as pc

        plain = pc.replace_substring(texts, self.thousands, "") if self.thousands else texts
        plain = plain if self.decimal == "." else pc.replace_substring(plain, self.decimal, ".")
        plain = pc.replace_substring_regex(plain, r"^\+", "")
        return plain.cast(pa.int64() if self.kind == "integer" else pa.float64())

    def _dates(self, texts: "pa.ChunkedArray") -> "pa.ChunkedArray":
        """A day that its month does not have is null: `strptime` would go on into the next."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.extract_regex(texts, self._pattern)
        day, clock = ["year", "month", "day"], ["hour", "minute", "second"] if self.kind == "instant" else []
        parts = [pc.struct_field(found, name) for name in (*day, *clock)]
        filled = [pc.utf8_lpad(pc.if_else(pc.equal(part, ""), "0", part), 2, "0") for part in parts]
        instants = pc.strptime(
            pc.binary_join_element_wise(*filled, "-"),
            format="%Y-%m-%d-%H-%M-%S" if clock else "%Y-%m-%d",
            unit="s",
            error_is_null=True,
        )
        real = pc.equal(pc.day(instants), filled[2].cast(pa.int64()))
        return pc.if_else(real, instants, None).cast(pa.timestamp("s") if clock else pa.date32())


_EXAMPLE = {"y": "2026", "m": "12", "d": "31"}
TEXT = CellFormat("text")
_INTEGERS = [CellFormat("integer", thousands=parted) for parted in ("", ",", ".", " ", "'")]
_PARTED = {".": ("", ",", " ", "'"), ",": ("", ".", " ", "'")}
_NUMBERS = [CellFormat("number", decimal, parted) for decimal, options in _PARTED.items() for parted in options]
_DATES = [
    CellFormat(kind, order=order, separator=separator) for kind in DATED for separator in "-./" for order in ORDERS
]
FORMATS: dict[str, list[CellFormat]] = {
    "boolean": [CellFormat("boolean")],
    "number": [*_INTEGERS, *_NUMBERS],
    "date": _DATES,
}
"""All that is looked for, plainer formats first."""
