"""What a table is once it is read: what its columns mean, and the rows of its three parts."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tessella.data.sources import Rows
from tessella.data.splitting import shuffled
from tessella.data.tables.columns import Column
from tessella.data.tables.encoding import Encoding
from tessella.data.tables.values import Value


@dataclass(frozen=True)
class Table:
    """train, validation and test partition the rows; their batches are those of the encoding.

    Attributes:
        name: the key in `TABLES`, quantized-NAME for a toy, or what its owner calls it.
        encoding: what the columns mean.
        train: rows (codes,) or (codes, numbers), like `validation` and `test`.
        entropy_floor: in nats, what no fitted model's mean -log P can pass, where that is known.
        partial: what is missing or simulated, in one sentence that belongs into every result made from this table;
            None for the complete published table.
        source: the data set, its authors and its home.
        licence: of the data.
    """

    name: str
    encoding: Encoding
    train: Rows
    validation: Rows
    test: Rows
    entropy_floor: float | None
    partial: str | None
    source: str
    licence: str

    @property
    def parts(self) -> dict[str, Rows]:
        """Train, validation and test by name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}


def table_of(
    name: str,
    columns: Sequence[Column],
    values: Sequence[Sequence[Value]],
    seed: int = 0,
    validation: float = 0.1,
    test: float = 0.1,
) -> Table:
    """A table of your own: its rows in a seeded order, the first for training, the next for validation, then the test.

    Args:
        name: what results will call it.
        columns: what the columns mean, as `columns.learn` says it.
        values: for each column its values, one for each row.
        seed: of the order.
        validation: share of the rows, rounded down.
        test: share of the rows, rounded down.

    >>> colour = Column("colour", "categorical", ("blue", "red"))
    >>> table = table_of("mine", [colour], [["red", "blue"] * 10])
    >>> [len(part) for part in (table.train, table.validation, table.test)]
    [16, 2, 2]
    """
    encoding = Encoding(tuple(columns))
    batch = encoding.encode(values)
    rows, held = len(batch[0]), [int(len(batch[0]) * share) for share in (validation, test)]
    if min(held) < 1 or sum(held) >= rows:
        raise ValueError(
            f"validation, test: got shares {validation} and {test} of {rows} rows, which is {held[0]} and {held[1]}; "
            "expected at least 1 row in each part, and in what is left for training"
        )
    parts = map(torch.from_numpy, shuffled(rows, seed, rows - sum(held), held[0]))
    train, validating, testing = (Rows(*(tensor[part] for tensor in batch)) for part in parts)
    return Table(name, encoding, train, validating, testing, None, None, "given by its owner", "its owner's")
