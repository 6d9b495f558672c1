"""Which tables there are, where they are, and whether they are what they should be."""

from dataclasses import dataclass
from pathlib import Path

from tessella.data.locate import SHIPPED
from tessella.data.tables.finding import Found, download, entry_of, find, remedy
from tessella.data.tables.registry import TABLES, Entry


@dataclass(frozen=True)
class Listing:
    """One line of the catalogue; no file was opened for it.

    Attributes:
        name: the key in `TABLES`.
        rows: number of rows, of the part that is here where only a part is.
        variables: number of variables.
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
    """All tables, whether here or not.

    >>> [listing.name for listing in available()]
    ['connect4', 'forests', 'mushroom', 'nursery', 'pokerhands', 'uscensus90']
    """
    return [_listing(name, entry) for name, entry in TABLES.items()]


def get(name: str) -> tuple[Path, ...]:
    """The files of the complete table: where they are, after a download into the cache if they were nowhere."""
    entry = entry_of(name)
    found = find(entry)
    if found is None or found.partial:
        found = download(entry)
    return tuple(dict.fromkeys(found.paths))


def check(name: str) -> Check:
    """Read a table that is here; verify checksum, format, number of rows, variables and categories."""
    entry = entry_of(name)
    try:
        found = find(entry)
        if found is None:
            return Check(name, False, f"{name}: {_advice(name, entry)}")
        found.read()
    except (OSError, ValueError) as error:
        return Check(name, False, str(error))
    note = f"; {found.partial}" if found.partial else ""
    return Check(name, True, f"{_where(found)}: checksum and format are right: {found.extent}{note}")


def _listing(name: str, entry: Entry) -> Listing:
    found = find(entry)
    extent = found.extent if found else entry.extent
    where, partial = (_where(found), found.partial) if found else (_advice(name, entry), None)
    return Listing(name, extent.rows, extent.variables, extent.categories, where, partial, entry.licence)


def _where(found: Found) -> str:
    if found.paths[0].parent == SHIPPED:
        return "shipped with tessella"
    return ", ".join(dict.fromkeys(map(str, found.paths)))


def _advice(name: str, entry: Entry) -> str:
    return f"not here: get({name!r}) downloads it; or {remedy(entry)}"
