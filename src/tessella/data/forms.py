"""What is known about a table before a file is opened, and where its files are; the same for every kind of table."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from tessella.data import locate, reading
from tessella.data.reading import RawFile

COMPACT = "described"  # the checksum of a compact file is in the description beside it
UNKNOWN = ""  # no checksum is known: the file is streamed, and its extent is all that is verified


@dataclass(frozen=True)
class Extent:
    """How large a table is.

    Attributes:
        rows: of the whole table.
        variables: columns that vary; 0 for a text, whose rows are characters.
        categories: the most that one variable has; 0 where variables are real numbers.
        parts: rows for train, validation and test, where the files say it and no rule of ours.

    >>> print(Extent(12_960, 8, 5), Extent(6, 2, parts=(4, 1, 1)), Extent(99, 0, 27), sep="; ")
    12,960 rows, 8 variables, at most 5 categories; 4 + 1 + 1 rows, 2 real numbers; 99 characters, 27 different
    """

    rows: int
    variables: int
    categories: int = 0
    parts: tuple[int, ...] = ()

    def __str__(self) -> str:
        rows = " + ".join(f"{part:,}" for part in self.parts or (self.rows,))
        if not self.variables:
            return f"{rows} characters, {self.categories} different"
        kind = f"variables, at most {self.categories} categories" if self.categories else "real numbers"
        return f"{rows} rows, {self.variables} {kind}"


class Parsed(Protocol):
    """What a parser gives."""

    @property
    def extent(self) -> Extent:
        """How large it is."""
        ...


P = TypeVar("P", bound=Parsed)


@dataclass(frozen=True)
class Form(Generic[P]):
    """One form in which a table may lie in a folder.

    Attributes:
        files: all of them are needed, in the order in which `parse` takes them; the checksum is that of `RawFile`,
            `COMPACT` or `UNKNOWN`.
        parse: from what the files hold to the table.
        extent: what `parse` should give.
        partial: what is missing, None where the form is complete.
        archive: the zip file at the home of the data that holds the files.
    """

    files: tuple[RawFile, ...]
    parse: Callable[..., P]
    extent: Extent
    partial: str | None = None
    archive: str = ""

    @property
    def compact(self) -> bool:
        """Whether it is a file with a description beside it."""
        return self.files[0].checksum == COMPACT

    @property
    def names(self) -> str:
        """Its files, for messages."""
        files = " and ".join(file.name for file in self.files)
        return f"{locate.name_of(self.archive)} or {files}" if self.archive else files

    def find(self, name: str) -> tuple[Path, ...] | None:
        """Where the files are, all together in a folder of `locate.folders` or in its subfolder `name`."""
        for prefix in ("", f"{name}/"):
            names = tuple(prefix + file.name for file in self.files)
            if paths := locate.find(names, prefix + locate.name_of(self.archive) if self.archive else ""):
                return paths
        return None

    def verified(self, parsed: P) -> P:
        """What was parsed, if it is as large as it should be."""
        if parsed.extent != self.extent:
            raise ValueError(f"got {parsed.extent}; expected {self.extent}")
        return parsed


Found = tuple[Form[P], tuple[Path, ...]]  # the form that is here, and where


@dataclass(frozen=True, kw_only=True)
class Entry(ABC, Generic[P]):
    """Everything known about a table before its file is opened.

    Attributes:
        source: the data set, its authors and its home.
        licence: of the data.
        forms: in the order in which they are looked for, complete ones first.
    """

    source: str
    licence: str = "CC BY 4.0"
    forms: tuple[Form[P], ...]

    @property
    def extent(self) -> Extent:
        """Of the complete table."""
        return self.forms[0].extent

    @property
    def home(self) -> Form[P] | None:
        """The form that can be downloaded."""
        return next((form for form in self.forms if form.archive), None)

    @abstractmethod
    def read(self, form: Form[P], paths: tuple[Path, ...], seed: int = 0) -> P:
        """The table from files of this form, verified; `seed` is that of whatever is drawn."""

    def find(self, name: str) -> Found[P] | None:
        """The first form whose files are here."""
        return next(((form, paths) for form in self.forms if (paths := form.find(name))), None)

    def download(self, name: str, note: str = "") -> Found[P]:
        """The archive, from its home into the cache; one that fails its checksum does not stay there.

        Args:
            name: of the table.
            note: what else a message should say.
        """
        otherwise = note + self.remedy(name)
        if self.home is None:
            raise FileNotFoundError(f"{name}: not here; {otherwise}")
        return self.home, _fetched(self.home, otherwise)

    def remedy(self, name: str) -> str:
        """How to come by the table without a download."""
        files = ", or ".join(form.names for form in self.forms if not form.compact)
        return f"put {files} into the folder named by TESSELLA_DATA or its subfolder {name} ({self.source})"


def _fetched(form: Form[P], otherwise: str) -> tuple[Path, ...]:
    """The archive of a form, once for each of the files in it."""
    try:
        path = locate.download(form.archive)
    except OSError as error:
        raise FileNotFoundError(f"the download of {form.archive} failed ({error}); {otherwise}") from error
    try:
        for file in form.files:
            reading.read_raw(path, file)
    except ValueError:
        path.unlink()
        raise
    return (path,) * len(form.files)
