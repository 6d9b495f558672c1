"""Texts by name, or from a file of one's own, cut into train, validation and test."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from tessella.data.sources import Windows
from tessella.data.texts.alphabet import Alphabet
from tessella.data.texts.registry import TEXTS, Coded

PERCENT = (90, 5)  # of the characters, for training and validation; of the published texts 90 and 5 million


@dataclass(frozen=True)
class Text:
    """A text in three parts, each codes of characters, uint8 (n,).

    Attributes:
        name: the key in `TEXTS`, or the name of the file.
        alphabet: what the codes mean.
        partial: what is missing, None for a complete text.
    """

    name: str
    alphabet: Alphabet
    train: Tensor
    validation: Tensor
    test: Tensor
    partial: str | None
    source: str
    licence: str

    @property
    def parts(self) -> dict[str, Tensor]:
        """By name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def windows(self, part: str, length: int, stride: int | None = None) -> Windows:
        """Of one part; without a stride no character comes twice, as in the published evaluation."""
        codes = self.parts[part]
        if len(codes) < length:
            raise ValueError(
                f"{self.name}: its {part} part has {len(codes):,} characters; expected at least length = {length}, one "
                "window: take a longer text, or shorter windows"
            )
        return Windows(codes, length, stride)


def load_text(name: str) -> Text:
    """A text of `TEXTS`, in its own order: the first 90% train, 5% validation, 5% test, as published.

    Files come from the folder `TESSELLA_DATA`, the cache, or the web, in this order, and are verified. Where only a
    part of the published file is at hand, that part is cut likewise, and `Text.partial` says so.
    """
    if name not in TEXTS:
        raise ValueError(f"text {name!r}: not known; expected one of {', '.join(TEXTS)}")
    entry = TEXTS[name]
    form, paths = entry.find(name) or entry.download(name)
    return _cut(name, entry.read(form, paths), form.partial, entry.source, entry.licence)


def text_of_file(path: Path | str, alphabet: Alphabet | None = None) -> Text:
    """A file of one's own, cut 90/5/5 %.

    Args:
        path: of any file; it is read as bytes.
        alphabet: the one that a model has learned; without it, the bytes that occur in the file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; expected a text")
    content = path.read_bytes()
    if len(set(content)) < 2:
        raise ValueError(f"{path}: got {len(content):,} bytes, {len(set(content))} different; expected a text")
    known = alphabet or Alphabet.of(content)
    return _cut(path.name, Coded(known, known.encode(content)), None, str(path), "its owner's")


def _cut(name: str, coded: Coded, partial: str | None, source: str, licence: str) -> Text:
    n = len(coded.codes)
    first, second = (n * percent // 100 for percent in PERCENT)
    train, validation, test = coded.codes.tensor_split([first, first + second])
    return Text(name, coded.alphabet, train, validation, test, partial, source, licence)
