"""How a CSV file is written: what parts its fields, how its characters are stored."""

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

HEAD = 2**20  # bytes that decide
LINES = 200  # of them
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|"}


@dataclass(frozen=True)
class Dialect:
    """What parts the fields of a CSV file, its encoding, and the names of its columns."""

    delimiter: str
    encoding: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"fields parted by {DELIMITERS.get(self.delimiter, repr(self.delimiter))}, encoding {self.encoding}"

    @property
    def usual(self) -> bool:
        """Whether it needs no mention."""
        return self.delimiter == "," and self.encoding.startswith("utf-8")


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is written, where the guess is wrong."""

    delimiter: str | None = None
    """What parts the fields of a CSV file: a character, or comma, semicolon, tab, pipe. Found out without it."""
    encoding: str | None = None
    """Of a CSV file: utf-8, latin-1, utf-16, ... Found out without it."""


def detect(path: Path, options: CsvOptions) -> Dialect:
    """From the beginning of a file, and what is said about it."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    if not head.strip():
        raise ValueError(f"{path}: got an empty file; expected a line of column names, and rows")
    encoding = _checked(options.encoding) if options.encoding else _encoding(head)
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(head).removeprefix("\ufeff")
    lines = text.splitlines(keepends=True)[:LINES]
    lines = lines[:-1] if len(head) == HEAD and len(lines) > 1 else lines  # the last one may be cut
    delimiter = NAMES.get(options.delimiter, options.delimiter) if options.delimiter else _delimiter(lines)
    if len(delimiter) != 1:
        raise ValueError(f"delimiter: got {options.delimiter!r}; expected one character, or {', '.join(NAMES)}")
    names = tuple(next((record for record in csv.reader(lines, delimiter=delimiter) if record), ()))
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        from tessella.data.tables.values import shown

        raise ValueError(f"{path}, line 1: columns {shown(twice)} appear more than once; expected different names")
    return Dialect(delimiter, encoding, names)


def line_of(path: Path, dialect: Dialect, row: int) -> int:
    """The line of a file on which a row ends, rows counted from 0; the file is read once more for it."""
    with path.open(encoding=dialect.encoding, errors="replace", newline="") as file:
        return next(islice(_ends(file, dialect.delimiter), row + 1, None), 0)  # a row more: the header


def _ends(file: io.TextIOBase, delimiter: str) -> Iterator[int]:
    reader = csv.reader(file, delimiter=delimiter)
    return (reader.line_num for record in reader if record)


def _checked(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ValueError(f"encoding: got {encoding!r}; expected utf-8, latin-1, cp1252, utf-16, ...") from None


def _encoding(head: bytes) -> str:
    """UTF-8 or UTF-16 where the bytes can be that; else the one of Western Windows, or Latin-1."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in head:
        return "utf-16-le" if head[1:2] == b"\0" else "utf-16-be"
    for encoding in ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(head)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def _delimiter(lines: list[str]) -> str:
    """The one by which most lines have as many fields as the first, and that several; a comma where there is none."""
    found = []
    for delimiter in DELIMITERS:
        widths = [len(record) for record in csv.reader(lines, delimiter=delimiter) if record]
        if widths and widths[0] > 1:
            found.append((widths.count(widths[0]) / len(widths), widths[0], delimiter))
    return max(found)[2] if found else ","
