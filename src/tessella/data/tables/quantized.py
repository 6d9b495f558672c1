"""Quantized 2-D toys as tables: two columns of 91 categories, and an entropy floor that is known exactly."""

from torch import Generator

from tessella.data.sources import Rows
from tessella.data.tables.columns import Column
from tessella.data.tables.encoding import Encoding
from tessella.data.tables.table import Table
from tessella.data.toys import TOYS, quantized_toy

_PREFIX = "quantized-"
_TRAIN, _OTHER = 200_000, 10_000  # rows

QUANTIZED = tuple(_PREFIX + toy for toy in TOYS)
"""The names of these tables."""


def quantized_table(name: str, seed: int = 0) -> Table:
    """200,000 rows for training and 10,000 each for validation and test, of a toy whose probabilities are known.

    Args:
        name: one of `QUANTIZED`.
        seed: of the rows; the probabilities are the same for all.
    """
    toy = quantized_toy(name.removeprefix(_PREFIX))
    generator = Generator().manual_seed(1 + seed)  # 0 is the seed of the points that the probabilities count
    train, validation, test = (Rows(toy.sample(rows, generator)) for rows in (_TRAIN, _OTHER, _OTHER))
    bins = tuple(map(str, range(len(toy.probabilities))))
    encoding = Encoding(tuple(Column(axis, "categorical", bins) for axis in ("x", "y")))
    return Table(
        name, encoding, train, validation, test, toy.entropy(), None, "made by tessella.data.toys", "Apache-2.0"
    )
