"""How the columns of a file are read: found out from all of its cells, kept with the model."""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tessella.cli.files.formats import DATED, FORMATS, MISSING, TEXT, CellFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from tessella.data import Column
    from tessella.data.tables.sketches import Sketch

IDENTIFIER = 0.5  # share of different texts from which on a column names its rows
SOME = 20  # texts that are looked at first
KEEPS = "--types keeps it"
INDEX = re.compile(r"__index_level_\d+__|Unnamed: 0|")  # what pandas calls the numbers of rows


@dataclass(frozen=True)
class Schema:
    """A format for each column, and the columns that are not for the model, with the reason."""

    formats: dict[str, CellFormat] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The schema in JSON's types."""
        return {
            "formats": {name: one.to_json() for name, one in self.formats.items()},
            "left_out": dict(self.left_out),
        }

    @classmethod
    def of_model(cls, said: Mapping[str, Any] | None, columns: "tuple[Column, ...]") -> Self:
        """What `to_json` wrote, or, of a model that was not fitted to a file, plain formats of its columns' types."""
        from tessella.folders import BrokenFolderError

        plain = {column.name: _plain_format(column) for column in columns}
        if said is None:
            return cls(plain)
        try:
            written = {name: CellFormat.from_json(one) for name, one in said["formats"].items()}
            return cls(plain | written, dict(said["left_out"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BrokenFolderError(f"schema of the model: cannot be read ({error}); fit the model again") from None


def _plain_format(column: "Column") -> CellFormat:
    """By the type of a column's values."""
    if column.kind == "date":
        return CellFormat("instant" if column.instants else "date")
    if column.number:
        return CellFormat("number")
    kinds: dict[type, CellFormat] = {
        bool: CellFormat("boolean"),
        int: CellFormat("number"),
        float: CellFormat("number"),
    }
    kinds |= {datetime.date: CellFormat("date"), datetime.datetime: CellFormat("instant")}
    known = {type(category) for category in column.categories if category is not None}
    return kinds.get(known.pop(), TEXT) if len(known) == 1 else TEXT


class Inference:
    """Formats that all cells of each column allow, and what decides where there are several.

    Args:
        texts: the columns of a CSV file, as texts.
        declared: types that the user gave some columns.
        delimiter: of the file; semicolons make decimal commas likely.
        visible: whether to show how many columns have been looked at.
    """

    def __init__(self, texts: "pa.Table", declared: Mapping[str, str], delimiter: str, visible: bool = False):
        from tessella.progress import each

        self.different: dict[str, pa.Array] = {}
        self.possible: dict[str, list[CellFormat]] = {}
        for name in each(texts.column_names, "columns looked at", visible):
            self.different[name] = texts[name].unique()
            self.possible[name] = _possible(self.different[name], declared.get(name))
        self.decimal = self._certain_decimal()
        self.commas = self.decimal == "," or (not self.decimal and delimiter == ";")
        self.days_first = self._days_first()

    def schema_formats(self) -> dict[str, CellFormat]:
        """The format of each column."""
        return {name: self._chosen(options) for name, options in self.possible.items()}

    def notes(self) -> Iterator[str]:
        """What a user should know about the formats."""
        for name, options in self.possible.items():
            chosen = self._chosen(options)
            unsure = "; every cell could be read otherwise, too" if _unsure(options, chosen) else ""
            if unsure or not chosen.plain:
                yield f"column {name!r}: read as {chosen}{unsure}"
            if chosen.kind != "text" and (marks := _marks(self.different[name])):
                yield f"column {name!r}: {', '.join(map(repr, marks))} taken for missing"

    def _chosen(self, options: list[CellFormat]) -> CellFormat:
        """Plain numbers are what they look like, unless another column is certain about commas."""
        wanted = "," if self.commas and (self.decimal or not any(one.plain for one in options)) else "."
        liked = [one for one in options if one.style in ("", wanted)] or options
        if liked[0].kind in DATED:
            unlikely = "mdy" if self.days_first or liked[0].separator != "/" else "dmy"
            liked = [one for one in liked if one.order != unlikely] or liked
        return liked[0]

    def _certain_decimal(self) -> str:
        """What is decimal in columns that leave no choice, where they agree; nothing where they do not."""
        styles = [{one.style for one in options} for options in self.possible.values()]
        certain = {found.pop() for found in styles if len(found) == 1} & {",", "."}
        return certain.pop() if len(certain) == 1 else ""

    def _days_first(self) -> bool:
        """Whether days come before months, where columns leave no choice; else where commas are decimal."""
        dated = [options for options in self.possible.values() if options[0].kind in DATED]
        orders = [{one.order for one in options} for options in dated]
        certain = {found.pop() for found in orders if len(found) == 1} & {"dmy", "mdy"}
        return "dmy" in certain if len(certain) == 1 else self.commas


def _unsure(options: list[CellFormat], chosen: CellFormat) -> bool:
    """Whether days could be months, or commas and points each other's; plain numbers are what they look like."""
    if chosen.kind in DATED:
        return len({one.order for one in options}) > 1
    return not chosen.plain and {",", "."} <= {one.style for one in options}


def _possible(different: "pa.Array", declared: str | None) -> list[CellFormat]:
    """Formats in which all of the texts can be read, the plainest first; text where there is none.

    A column that was declared to be numbers or dates has to be that: where its cells differ, reading says which.
    """
    import pyarrow.compute as pc

    from tessella.data.tables.columns import NUMBERS

    families = ["boolean", "number", "date"]
    if declared in NUMBERS:
        families = ["date"] if declared == "date" else ["number"]
    there = pc.drop_null(different)
    for family in families:
        likely = [one for one in FORMATS[family] if len(there) and _reads(one, there[:SOME])]
        if found := [one for one in likely if len(there) <= SOME or _reads(one, there)]:
            return _first_kind(found)
    if declared not in NUMBERS:
        return [TEXT]
    return [CellFormat("date") if declared == "date" else CellFormat("number")]


def _first_kind(found: list[CellFormat]) -> list[CellFormat]:
    """Integers and numbers are alternatives of each other, and so are orders of dates; a date is no instant."""
    family = {"integer": ("integer", "number")}
    return [one for one in found if one.kind in family.get(found[0].kind, (found[0].kind,))]


def _reads(form: CellFormat, texts: "pa.Array") -> bool:
    """Whether all texts are of this format, or stand for missing values."""
    return form.misread(texts, form.parse(texts)) is None


def _marks(different: "pa.Array") -> list[str]:
    """Words that were taken for missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.drop_null(pc.utf8_trim_whitespace(different))
    return sorted({word for word in pc.filter(words, pc.is_in(words, value_set=pa.array(MISSING))).to_pylist() if word})


def columns_to_leave_out(table: "pa.Table", declared: Mapping[str, str]) -> dict[str, str]:
    """Columns that number or name the rows or are empty, unless their type was declared; the reason of each."""
    return _reasons({name: _counted(table[name]) for name in table.column_names if name not in declared})


def sketches_to_leave_out(sketches: "Iterable[Sketch]", declared: Mapping[str, str]) -> dict[str, str]:
    """The same of columns that were looked at piece by piece."""
    return _reasons(
        {
            one.name: (one.rows - one.missing, len(one.counts) if one.texts else 0)
            for one in sketches
            if one.name not in declared
        }
    )


def _counted(column: "pa.ChunkedArray") -> tuple[int, int]:
    """Rows that have a value, and different texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    different = pc.count_distinct(column, mode="only_valid").as_py() if text else 0
    return len(column) - column.null_count, different


def _reasons(counts: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    found = {}
    for name, (present, different) in counts.items():
        if INDEX.fullmatch(name):
            found[name] = f"the numbers of a data frame's rows; {KEEPS}"
        elif not present:
            found[name] = f"all of its cells are missing; {KEEPS}"
        elif reason := _names_rows(different, present):
            found[name] = reason
    return found


def _names_rows(different: int, present: int) -> str:
    from tessella.data.tables.columns import FEW, MOST_CATEGORIES

    if different > MOST_CATEGORIES:
        most = f"more than the {MOST_CATEGORIES:,} categories that a column may have unless that is declared"
        return f"its different texts are {most}; {KEEPS}, or group the rare ones"
    if different <= max(FEW, IDENTIFIER * present):
        return ""
    return f"{different:,} different texts in {present:,} rows, so it names or describes them; {KEEPS}"
