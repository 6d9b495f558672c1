"""The six tables of discrete density estimation, with the published preprocessing and the published splits."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tessella.data.tables.finding import download, entry_of, find
from tessella.data.tables.formats import Coded
from tessella.data.tables.registry import Entry
from tessella.data.tables.schema import Schema

_FEWEST = 20  # rows of a simulated table: no part of a 90/5/5 split is empty


@dataclass(frozen=True)
class Table:
    """train, validation and test partition the rows; codes[i, n] < schema.counts[n].

    Attributes:
        name: the key in `TABLES`.
        schema: names and categories of the N variables.
        train: int64 (rows, N), like `validation` and `test`.
        floor: what no fitted model's mean -log P can pass, in nats, where that is known.
        partial: what is missing or simulated, in one sentence that belongs into every result made from this table;
            None for the complete published table.
        source: the data set, its authors and its home.
        licence: of the data.
    """

    name: str
    schema: Schema
    train: Tensor
    validation: Tensor
    test: Tensor
    floor: float | None
    partial: str | None
    source: str
    licence: str


def load_table(name: str, *, simulated: bool = False, seed: int = 0, rows: int | None = None) -> Table:
    """Rows in the order RandomState(published seed).permutation(n), cut 80/10/10 (US Census: 90/5/5).

    Files come from the package, the folder `TESSELLA_DATA`, the cache, or the web, in this order. Where only a part of
    the published file is at hand, that part is used and `Table.partial` says so.

    Args:
        name: a key of `TABLES`.
        simulated: simulate the rows instead, where their law is known (pokerhands).
        seed: of the simulation; the seeds of the splits are fixed.
        rows: how many to simulate, by default as many as the published table has.

    >>> table = load_table("nursery")
    >>> [len(part) for part in (table.train, table.validation, table.test)], table.schema.counts
    ([10368, 1296, 1296], (3, 5, 4, 4, 3, 2, 3, 3))
    >>> table.schema.decode(table.train[:1])[0][:4]
    ('usual', 'very_crit', 'foster', '1')
    """
    entry = entry_of(name)
    if simulated:
        return _simulated(name, entry, entry.extent.rows if rows is None else rows, seed)
    if rows is not None:
        raise ValueError(f"rows: got {rows} without simulated=True; the published table has {entry.extent.rows:,} rows")
    found = find(entry) or download(entry)
    return _split(name, entry, found.read(), found.partial, entry.source)


def _simulated(name: str, entry: Entry, rows: int, seed: int) -> Table:
    if entry.simulate is None:
        raise ValueError(
            f"simulated: the law of table {name!r} is not known, so it cannot be simulated; use simulated=False"
        )
    if rows < _FEWEST:
        raise ValueError(f"rows: got {rows}; expected at least {_FEWEST}, so that no part of the split is empty")
    note = f"simulated: {rows:,} rows drawn with seed {seed} from the law of the published table, not its own rows"
    return _split(name, entry, entry.simulate(rows, seed), note, f"simulated with the law of {entry.source}")


def _split(name: str, entry: Entry, coded: Coded, partial: str | None, source: str) -> Table:
    rows = len(coded.codes)
    order = np.random.RandomState(entry.seed).permutation(rows)
    first, second = (rows * percent // 100 for percent in entry.percent)
    parts = np.split(order, [first, first + second])
    train, validation, test = (torch.from_numpy(coded.codes[part].astype(np.int64)) for part in parts)
    return Table(name, coded.schema, train, validation, test, entry.floor, partial, source, entry.licence)
