"""What is known about each text before a file is opened."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from tessella.data import reading
from tessella.data.forms import Entry, Extent, Form
from tessella.data.reading import RawFile
from tessella.data.texts.alphabet import Alphabet

_HOME = "http://mattmahoney.net/dc"
BYTES = Alphabet(bytes(range(256)))
LETTERS = Alphabet(b" abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True)
class Coded:
    """A text in codes, uint8 (n,)."""

    alphabet: Alphabet
    codes: Tensor

    @property
    def extent(self) -> Extent:
        """How large it is."""
        return Extent(len(self.codes), 0, len(self.alphabet))


@dataclass(frozen=True, kw_only=True)
class TextEntry(Entry[Coded]):
    """A text of a known alphabet and length.

    Attributes:
        length: of the windows of the published evaluation.
    """

    length: int

    def read(self, form: Form[Coded], paths: tuple[Path, ...], seed: int = 0) -> Coded:
        content = reading.read_raw(paths[0], form.files[0])
        try:
            return form.verified(form.parse(content))
        except ValueError as error:
            raise ValueError(f"{paths[0]}: not what was published: {error}") from error


def letters(content: bytes) -> Coded:
    """Small letters and spaces."""
    return Coded(LETTERS, LETTERS.encode(content))


def all_bytes(content: bytes) -> Coded:
    """Any bytes."""
    return Coded(BYTES, BYTES.encode(content))


TEXTS: dict[str, TextEntry] = {
    "text8": TextEntry(
        source=f"text8 (Mahoney, 2006): letters and spaces of English Wikipedia, {_HOME}/textdata.html",
        licence="CC BY-SA (Wikipedia)",
        length=256,
        forms=(
            Form(
                (RawFile("text8", "sha256:6e890197040d37d85beb962ae1f041ff1d9a9ca8d20c7d99c85027eebf51dca7"),),
                letters,
                Extent(100_000_000, 0, 27),
                archive=f"{_HOME}/text8.zip",
            ),
            Form(
                (
                    RawFile(
                        "text8.first_74081952",
                        "sha256:56994afbff37bd7c3de0c9d1e39231ba8ac50e42192849faef419f1e5c7dda06",
                    ),
                ),
                letters,
                Extent(74_081_952, 0, 27),
                partial="partial: the first 74,081,952 of 100,000,000 characters, cut 90/5/5 %; the published "
                "validation and test parts are not among them",
            ),
        ),
    ),
    "enwik8": TextEntry(
        source=f"enwik8 (Mahoney, 2006): the first 10^8 bytes of English Wikipedia, {_HOME}/textdata.html",
        licence="CC BY-SA (Wikipedia)",
        length=320,
        forms=(
            Form(
                (RawFile("enwik8", "sha256:2b49720ec4d78c3c9fabaee6e4179a5e997302b3a70029f30f2d582218c024a8"),),
                all_bytes,
                Extent(100_000_000, 0, 256),
                archive=f"{_HOME}/enwik8.zip",
            ),
        ),
    ),
}
