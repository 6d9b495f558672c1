"""One pass over a table in pieces: what its columns are, which rows are held out, and some rows to begin with."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from tessella.contracts import Batch
from tessella.data import Column, Encoding
from tessella.data.splitting import hashed
from tessella.data.tables.cells import Cells, plain, some
from tessella.data.tables.sketches import Sketch
from tessella.estimators.frames import check_width
from tessella.estimators.streaming.pieces import Pieces
from tessella.progress import Progress

HELD_OUT, SAMPLE = 50_000, 200_000  # rows at most that are kept: for validation and for the test each, to begin with
CELLS = 2**23  # of each part, at most
PARTS = ("test", "validation", "train")


@dataclass(frozen=True)
class Survey:
    """What one pass found.

    Attributes:
        pieces: the table.
        seed: of the parts.
        ends: a row is for the test if `hashed` says less than the first, for validation if less than the second; else
            for training, and kept here, too, if less than the third.
        sketches: of the columns.
        sizes: rows for training in each piece.
        kept: of each of `PARTS` the rows' places in the table, and their cells in pieces.
    """

    pieces: Pieces
    seed: int
    ends: tuple[float, float, float]
    sketches: tuple[Sketch, ...]
    sizes: tuple[int, ...]
    kept: Mapping[str, tuple[np.ndarray, list[list[Cells]]]]

    def __len__(self) -> int:
        return sum(self.pieces.sizes)

    @property
    def num_columns(self) -> int:
        """As an Arrow table says it."""
        return len(self.sketches)

    @property
    def parts(self) -> dict[str, np.ndarray]:
        """Places of the kept rows of each part, in the order of `batch`."""
        return {name: self.kept[name][0][self._order(name)] for name in ("train", "validation", "test")}

    def columns(self) -> tuple[Column, ...]:
        """What there is to know about each column: types, categories and ranges of all rows, atoms of those kept."""
        found = []
        for place, sketch in enumerate(self.sketches):
            cells = [piece[place] for part in PARTS for piece in self.kept[part][1]]
            found.append(sketch.column([value for one in cells for value in plain(one)]))
        return tuple(found)

    def batch(self, encoding: Encoding, part: str) -> Batch:
        """The kept rows of a part, in random order."""
        pieces, order = self.kept[part][1], self._order(part)
        encoded = [
            np.concatenate([np.zeros(0), *(column.encode_cells(piece[i]) for piece in pieces)])[order]
            for i, column in enumerate(encoding.columns)
        ]
        return encoding.split(encoding.assemble(encoded))

    def _order(self, part: str) -> np.ndarray:
        """By what `hashed` says, which is what the rows were chosen by."""
        return np.argsort(hashed(self.kept[part][0], self.seed))

    def without(self, columns: Collection[str]) -> "Survey":
        """The same, some columns left out."""
        places = [i for i, sketch in enumerate(self.sketches) if sketch.name not in columns]
        kept = {
            part: (rows, [[piece[i] for i in places] for piece in pieces]) for part, (rows, pieces) in self.kept.items()
        }
        sketches = tuple(self.sketches[i] for i in places)
        return replace(self, pieces=self.pieces.without(columns), sketches=sketches, kept=kept)


def survey(
    pieces: Pieces,
    kinds: Mapping[str, str],
    seed: int,
    validation: float,
    test: float,
    progress: bool = False,
) -> Survey:
    """Read a table once, in memory that does not grow with its rows.

    Args:
        pieces: the table.
        kinds: types of some columns.
        seed: of the parts.
        validation, test: shares of the rows, but at most `HELD_OUT` of them.
        progress: show how many pieces have been read.
    """
    names, rows = [str(label) for label in pieces.layout.labels], sum(pieces.sizes)
    check_width(len(names))
    if rows < 2:
        raise ValueError(f"rows: got {rows}; expected at least two")
    sketches = tuple(Sketch(name, kinds.get(name)) for name in names)
    ends = part_ends(rows, len(names), validation, test)
    kept: dict[str, tuple[list[np.ndarray], list[list[Cells]]]] = {part: ([], []) for part in PARTS}
    sizes = []
    with Progress("row groups looked at", len(pieces.sizes), progress, keep=False) as done:
        for piece, first in enumerate(accumulate(pieces.sizes[:-1], initial=0)):
            cells = pieces.read(piece)
            for sketch, column in zip(sketches, cells, strict=True):
                sketch.add(column)
            places = first + np.arange(pieces.sizes[piece])
            part = np.searchsorted(ends, hashed(places, seed), side="right")
            for number, name in enumerate(PARTS):
                mine = (part == number).nonzero()[0]
                if len(mine):
                    kept[name][0].append(places[mine])
                    kept[name][1].append([some(column, mine) for column in cells])
            sizes.append(int((part >= PARTS.index("train")).sum()))
            done.move(piece + 1)
    found = {part: (np.concatenate([np.zeros(0, np.int64), *places]), held) for part, (places, held) in kept.items()}
    if not len(found["validation"][0]) or not len(found["train"][0]):
        raise ValueError(
            f"validation_fraction: got {validation} of {rows:,} rows, which left none for validation or for training; "
            "expected more rows, or another share"
        )
    return Survey(pieces, seed, ends, sketches, tuple(sizes), found)


def part_ends(rows: int, columns: int, validation: float, test: float) -> tuple[float, float, float]:
    """Where the parts end.

    >>> part_ends(1000, 5, validation=0.1, test=0.25)
    (0.25, 0.35, 1.0)
    >>> part_ends(10**8, 5, validation=0.1, test=0.1)
    (0.0005, 0.001, 0.003)
    """
    most = CELLS / columns / rows
    tested = min(test, HELD_OUT / rows, most)
    validated = tested + min(validation, HELD_OUT / rows, most)
    return tested, validated, min(1.0, validated + min(SAMPLE / rows, most))
