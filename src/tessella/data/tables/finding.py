"""From a table's name to the files it is read from, and from those to codes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tessella.data import locate, reading
from tessella.data.tables.formats import Coded
from tessella.data.tables.registry import TABLES, Entry, Extent


@dataclass(frozen=True)
class Found:
    """The file or files that a table will be read from."""

    entry: Entry
    paths: tuple[Path, ...]
    compact: bool

    @property
    def extent(self) -> Extent:
        """What these files should hold."""
        return self.entry.compact.partial[0] if self.compact and self.entry.compact.partial else self.entry.extent

    @property
    def partial(self) -> str | None:
        """What these files lack."""
        return self.entry.compact.partial[1] if self.compact and self.entry.compact.partial else None

    def read(self) -> Coded:
        """The whole table, with checksum and extent verified."""
        parse: Callable[..., Coded] = self.entry.compact.parse if self.compact else self.entry.parse
        parts = self._parts()
        try:
            coded = parse(*parts).varying()
            extent = Extent(len(coded.codes), len(coded.schema.variables), max(coded.schema.counts))
            if extent != self.extent:
                raise ValueError(f"got {extent}; expected {self.extent}")
        except (ValueError, KeyError) as error:
            where = ", ".join(map(str, self.paths))
            raise ValueError(f"{where}: not what was published: {error}") from error
        return coded

    def _parts(self) -> tuple[Any, ...]:
        if self.compact:
            return reading.read_compact(self.paths[0])
        return tuple(map(reading.read_raw, self.paths, self.entry.raw))


def entry_of(name: str) -> Entry:
    """TABLES[name], with an error that lists the names."""
    if name not in TABLES:
        raise ValueError(f"table {name!r}: not known; expected one of {', '.join(TABLES)}")
    return TABLES[name]


def find(entry: Entry) -> Found | None:
    """The complete table if it is here in any form (compact first: it loads faster), else a part of it, else None."""
    compact = locate.find_compact(entry.compact.stem)
    if compact and not entry.compact.partial:
        return Found(entry, (compact,), compact=True)
    raw = locate.find_raw(tuple(file.name for file in entry.raw), entry.archive_name)
    if raw:
        return Found(entry, raw, compact=False)
    return Found(entry, (compact,), compact=True) if compact else None


def download(entry: Entry) -> Found:
    """The archive of raw files, from its home into the cache; one that fails its checksum does not stay there."""
    return Found(entry, download_archive(entry.archive, entry.raw, remedy(entry)), compact=False)


def download_archive(url: str, raw: tuple[reading.RawFile, ...], otherwise: str) -> tuple[Path, ...]:
    """The archive at `url`, once for each of the raw files in it; `otherwise` says what to do when that fails."""
    try:
        path = locate.download(url)
    except OSError as error:
        raise FileNotFoundError(f"the download of {url} failed ({error}); {otherwise}") from error
    try:
        for file in raw:
            reading.read_raw(path, file)
    except ValueError:
        path.unlink()
        raise
    return (path,) * len(raw)


def remedy(entry: Entry) -> str:
    """How to come by a table without a download."""
    files = " and ".join(file.name for file in entry.raw)
    simulated = ", or simulate it with load_table(..., simulated=True)" if entry.simulate else ""
    return f"put {entry.archive_name} or {files} into the folder named by TESSELLA_DATA{simulated}"
