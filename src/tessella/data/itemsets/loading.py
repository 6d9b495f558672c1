"""Retail and Accidents: sets of four items, as published."""

from dataclasses import dataclass

import numpy as np
import torch

from tessella.data.itemsets.parsing import Transactions
from tessella.data.itemsets.registry import ITEMSETS, ItemSetEntry
from tessella.data.itemsets.shape import SetShape
from tessella.data.sources import PaddedSets


@dataclass(frozen=True)
class ItemSets:
    """train, validation and test partition the sets; their batches are (items, mask), items coded 0, ..., K - 1.

    Attributes:
        name: the key in `ITEMSETS`, or what its owner calls it.
        items: what each code means, K of them.
        train: sets, like `validation` and `test`.
        entropy_floor: in nats, the mean entropy of a set given the row that it was drawn from: no model's mean -log P
            can pass it; None where it is not known.
        partial: what is missing, in one sentence that belongs into every result made from these sets; None if nothing.
        source: the data set, its authors and its home.
        licence: of the data.
    """

    name: str
    items: tuple[int | str, ...]
    train: PaddedSets
    validation: PaddedSets
    test: PaddedSets
    entropy_floor: float | None
    partial: str | None
    source: str
    licence: str

    @property
    def shape(self) -> SetShape:
        """What models are told: K, and the sizes of the training sets."""
        return SetShape.of(self.train, len(self.items))

    @property
    def parts(self) -> dict[str, PaddedSets]:
        """Train, validation and test by name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}


def load_itemsets(name: str) -> ItemSets:
    """Sets of 4 items in the order of a permutation by the generator that drew them, cut 80/10/10.

    Files come from `TESSELLA_DATA` or the cache. docs/data.md has the rules by which sets are made of rows.

    Args:
        name: a key of `ITEMSETS`.
    """
    entry = _entry(name)
    form, paths = entry.find(name) or entry.download(name)
    codes, items, floor, generator = entry.read(form, paths)
    order = generator.permutation(len(codes))
    train, validation = len(codes) * 80 // 100, len(codes) * 10 // 100
    first, second, third = (_sets(part) for part in np.split(codes[order], [train, train + validation]))
    about = floor, form.partial, entry.source, entry.licence
    return ItemSets(name, tuple(items.tolist()), first, second, third, *about)


def load_transactions(name: str) -> Transactions:
    """The baskets that the sets are drawn from, as they are in the file: all items, and how many each row has.

    Args:
        name: a key of `ITEMSETS`.
    """
    entry = _entry(name)
    return entry.transactions(*(entry.find(name) or entry.download(name)))


def _entry(name: str) -> ItemSetEntry:
    if name not in ITEMSETS:
        raise ValueError(f"itemsets {name!r}: not known; expected one of {', '.join(ITEMSETS)}")
    return ITEMSETS[name]


def _sets(codes: np.ndarray) -> PaddedSets:
    number, size = codes.shape
    return PaddedSets(torch.from_numpy(codes).flatten(), size * torch.arange(number + 1))
