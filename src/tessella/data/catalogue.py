"""Which tables there are, where they are, and whether they are what they should be."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tessella.data.forms import UNKNOWN, Entry
from tessella.data.itemsets import ITEMSETS
from tessella.data.locate import SHIPPED
from tessella.data.tables import TABLES
from tessella.data.texts import TEXTS
from tessella.data.vectors import VECTORS, VectorTable
from tessella.data.vectors.loading import prepared_path


@dataclass(frozen=True)
class Listing:
    """One line of the catalogue; no file was opened for it, but a prepared one (`VectorTable.save`).

    Attributes:
        name: the key in `TABLES`, `VECTORS`, `ITEMSETS` or `TEXTS`.
        rows: number of rows, or characters, of the part that is here where only a part is.
        variables: number of variables; of sets, items in each; 0 for a text.
        categories: the most that one variable has; 0 where variables are real numbers.
        where: where the table was found, or how to get it.
        partial: what is missing, None for a complete table.
        licence: of the data.
    """

    name: str
    rows: int
    variables: int
    categories: int
    where: str
    partial: str | None
    licence: str


@dataclass(frozen=True)
class Check:
    """What `check` found: `ok`, and a message that says what was verified or what is wrong and what to do."""

    name: str
    ok: bool
    message: str


def available() -> list[Listing]:
    """All tables, whether here or not: of categories, of real numbers, then sets of items, then texts.

    >>> [listing.name for listing in available()][:7]
    ['connect4', 'forests', 'mushroom', 'nursery', 'pokerhands', 'uscensus90', 'power']
    """
    return [_listing(name, entry) for name, entry in _entries().items()]


def get(name: str) -> tuple[Path, ...]:
    """The files of the complete table: where they are, after a download into the cache if they were nowhere."""
    entry = _entry(name)
    found = entry.find(name)
    if found is None or found[0].partial:
        found = entry.download(name)
    return tuple(dict.fromkeys(found[1]))


def check(name: str) -> Check:
    """Read a table that is here; verify checksum, format, number of rows, variables and categories."""
    entry = _entry(name)
    try:
        found, prepared = entry.find(name), _prepared(name)
        if found:
            form, paths = found
            entry.read(form, paths)
        elif prepared:
            VectorTable.load(prepared)
            return Check(name, True, f"{prepared}: a prepared file, which can be read")
        else:
            return Check(name, False, f"{name}: {_advice(name, entry)}")
    except (OSError, ValueError) as error:
        return Check(name, False, str(error))
    what = "the format is" if any(file.checksum == UNKNOWN for file in form.files) else "checksum and format are"
    note = f"; {form.partial}" if form.partial else ""
    return Check(name, True, f"{_where(paths)}: {what} right: {form.extent}{note}")


def _entries() -> dict[str, Entry[Any]]:
    return {**TABLES, **VECTORS, **ITEMSETS, **TEXTS}


def _entry(name: str) -> Entry[Any]:
    if name not in (entries := _entries()):
        raise ValueError(f"table {name!r}: not known; expected one of {', '.join(entries)}")
    return entries[name]


def _listing(name: str, entry: Entry[Any]) -> Listing:
    found, prepared = entry.find(name), _prepared(name)
    extent, partial = (found[0].extent, found[0].partial) if found else (entry.extent, None)
    rows, where = extent.rows, _where(found[1]) if found else _advice(name, entry)
    if prepared and not found:
        table = VectorTable.load(prepared)
        rows, partial, where = sum(map(len, table.parts.values())), table.partial, str(prepared)
    return Listing(name, rows, extent.variables, extent.categories, where, partial, entry.licence)


def _prepared(name: str) -> Path | None:
    return prepared_path(name) if name in VECTORS else None


def _where(paths: tuple[Path, ...]) -> str:
    if paths[0].parent == SHIPPED:
        return "shipped with tessella"
    return ", ".join(dict.fromkeys(map(str, paths)))


def _advice(name: str, entry: Entry[Any]) -> str:
    download = f"get({name!r}) downloads it; or " if entry.home else ""
    return f"not here: {download}{entry.remedy(name)}"
