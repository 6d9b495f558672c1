"""The training rows of a table in pieces, encoded: a `Stream`."""

import json
from collections.abc import Sequence
from hashlib import sha256
from itertools import accumulate

import numpy as np

from tessella.contracts import Batch
from tessella.data import Encoding
from tessella.data.splitting import hashed
from tessella.data.tables.cells import some
from tessella.estimators.streaming.memory import GIGABYTE
from tessella.estimators.streaming.survey import PARTS, Survey

CELLS = 2**23  # of a window, at most: 67 MB
PER_CELL = 60  # bytes of a window's cell: it is there, the next one is being read, and both are made of something


class TableStream:
    """Group i = the training rows of piece i, encoded: those that the survey does not hold out.

    Args:
        survey: of the table.
        encoding: of its columns.
        memory: gigabytes for windows; None: as many as windows of 8 million cells take, half of one.
    """

    def __init__(self, survey: Survey, encoding: Encoding, memory: float | None = None):
        self.survey, self.encoding = survey, encoding
        cells = CELLS if memory is None else min(CELLS, memory * GIGABYTE / PER_CELL)
        self.window = max(1, int(cells / encoding.shape.variables))
        self._first = list(accumulate(survey.pieces.sizes, initial=0))

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def sizes(self) -> Sequence[int]:
        """Training rows of each piece."""
        return self.survey.sizes

    def read(self, group: int) -> Batch:
        """The training rows of a piece."""
        places = np.arange(self._first[group], self._first[group + 1])
        mine = (hashed(places, self.survey.seed) >= self.survey.ends[PARTS.index("validation")]).nonzero()[0]
        cells = self.survey.pieces.read(group)
        encoded = [c.encode_cells(some(one, mine)) for c, one in zip(self.encoding.columns, cells, strict=True)]
        return self.encoding.split(self.encoding.assemble(encoded))

    @property
    def shapes(self) -> list[list[int]]:
        """Of all rows, if they were in memory."""
        numbers = [[len(self), len(self.encoding.numbers)]] if self.encoding.numbers else []
        return [[len(self), len(self.encoding.counts)], *numbers]

    @property
    def digest(self) -> str:
        """Of the table, its columns, its parts, and the windows."""
        said = [self.survey.pieces.digest, self.survey.seed, self.survey.ends, self.window, self.encoding.to_json()]
        return sha256(json.dumps(said).encode()).hexdigest()
