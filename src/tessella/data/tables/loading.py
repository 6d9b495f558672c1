"""Tables by name: six of discrete density estimation, preprocessed and split as published, and the quantized toys."""

import numpy as np
import torch

from tessella.data.sources import Rows
from tessella.data.splitting import shuffled
from tessella.data.tables.encoding import Encoding
from tessella.data.tables.parsing import Coded
from tessella.data.tables.quantized import QUANTIZED, quantized_table
from tessella.data.tables.registry import TABLES, TableEntry
from tessella.data.tables.table import Table

_FEWEST = 20  # rows of a simulated table: no part of a 90/5/5 split is empty


def load_table(
    name: str, *, simulated: bool = False, joined: bool = False, seed: int = 0, rows: int | None = None
) -> Table:
    """Rows in the order RandomState(published seed).permutation(n), cut 80/10/10 (US Census: 90/5/5).

    Files come from the package, the folder `TESSELLA_DATA`, the cache, or the web, in this order. Where only a part of
    the published file is at hand, that part is used and `Table.partial` says so.

    Args:
        name: a key of `TABLES`, or quantized-NAME for a 2-D toy of 91 x 91 categories, which is always simulated.
        simulated: simulate the rows instead, where their distribution is known (pokerhands).
        joined: columns that say one thing together are one (connect4: files of the board, forests: area and soil,
            pokerhands: cards), the same rows with the same probabilities in fewer variables.
        seed: of the simulation; the seeds of the splits are fixed.
        rows: how many to simulate, by default as many as the published table has.

    >>> table = load_table("nursery")
    >>> [len(part) for part in (table.train, table.validation, table.test)], table.encoding.counts
    ([10368, 1296, 1296], (3, 5, 4, 4, 3, 2, 3, 3))
    >>> table.encoding.decode(*table.train.batch(torch.tensor([0])))[:4]
    [['usual'], ['very_crit'], ['foster'], ['1']]
    """
    if name not in (known := (*TABLES, *QUANTIZED)):
        raise ValueError(f"table {name!r}: not known; expected one of {', '.join(known)}")
    if joined and not (name in TABLES and TABLES[name].joints):
        able = [other for other, entry in TABLES.items() if entry.joints]
        raise ValueError(
            f"joined: no columns of {name!r} are known to say one thing; expected one of {', '.join(able)}"
        )
    if name in QUANTIZED:
        if rows is not None:
            raise ValueError(f"rows: got {rows}; expected None for a quantized toy, which always has the same number")
        return quantized_table(name, seed)
    entry = TABLES[name]
    if simulated:
        return _simulated(name, entry, entry.extent.rows if rows is None else rows, seed, joined)
    if rows is not None:
        raise ValueError(f"rows: got {rows} without simulated=True; the published table has {entry.extent.rows:,} rows")
    form, paths = entry.find(name) or entry.download(name)
    return _split(name, entry, entry.read(form, paths), form.partial, entry.source, joined)


def _simulated(name: str, entry: TableEntry, rows: int, seed: int, joined: bool) -> Table:
    if entry.simulate is None:
        raise ValueError(f"simulated: the distribution of table {name!r} is not known; use simulated=False")
    if rows < _FEWEST:
        raise ValueError(f"rows: got {rows}; expected at least {_FEWEST}, so that no part of the split is empty")
    drawn = f"{rows:,} rows drawn with seed {seed} from the distribution of the published table"
    note = f"simulated: {drawn}, not its own rows"
    source = f"simulated with the distribution of {entry.source}"
    return _split(name, entry, entry.simulate(rows, seed), note, source, joined)


def _split(name: str, entry: TableEntry, coded: Coded, partial: str | None, source: str, joined: bool) -> Table:
    coded = entry.joined(coded) if joined else coded
    rows, encoding = len(coded.codes), Encoding(coded.columns)
    sizes = (rows * percent // 100 for percent in entry.percent)
    parts = (coded.codes[part].astype(np.int64) for part in shuffled(rows, entry.seed, *sizes))
    train, validation, test = (Rows(torch.from_numpy(part)) for part in parts)
    return Table(name, encoding, train, validation, test, entry.entropy_floor, partial, source, entry.licence)
