"""Cells of a file that a model cannot take: an error, taken for missing, or their rows left out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tessella.cli.files import TableFile
from tessella.cli.loaded import Loaded

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

Unseen = Literal["error", "missing", "skip"]
NAMED = 10  # rows that a message names


class Refused(NamedTuple):
    """What a model could not take of a piece."""

    rows: list[int]
    """Where in the file they are."""
    cells: dict[str, int]
    """How many, of each column."""


class Checked:
    """The rows of a file as a model takes them.

    Args:
        loaded: the model.
        file: which the pieces come from.
        unseen: what to do about a value that training did not see and the model gives no probability.
        gaps: whether a missing value is fine wherever it is, since it will be asked for.
    """

    def __init__(self, loaded: Loaded, file: TableFile, unseen: Unseen, gaps: bool = False):
        self.loaded, self.file, self.unseen, self.gaps = loaded, file, unseen, gaps
        self.ignored = ""  # a column that makes no difference

    def take(self, piece: "pa.Table", first: int) -> "tuple[pa.Table, np.ndarray, Refused]":
        """A piece without what the model cannot take, which of its rows are left, (rows,), and what was refused.

        Args:
            piece: of the file.
            first: where it begins.
        """
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        kept, cells = np.ones(len(piece), dtype=bool), dict[str, int]()
        for name, refused in self._refused(piece).items():
            cells[name] = int(refused.sum())
            kept &= ~refused
            if self.unseen == "missing":
                rest = pc.if_else(pa.array(refused), None, piece[name])
                piece = piece.set_column(piece.column_names.index(name), name, rest)
        found = Refused((first + np.flatnonzero(~kept)).tolist(), cells)
        if self.unseen == "missing":
            return piece, np.ones(len(piece), dtype=bool), found
        return piece.filter(pa.array(kept)), kept, found

    @contextmanager
    def naming_rows(self, first: int) -> Iterator[None]:
        """Errors inside, about a piece that began at this row, say where in the file it is."""
        from tessella.data.tables.cells import CellError

        try:
            yield
        except CellError as error:
            advice = "--unseen skip leaves such rows out"
            if self.unseen == "error":
                advice += ", --unseen missing takes such values for missing"
            where = self.file.place(first + error.row)
            raise ValueError(f"{where}, column {error.column!r}: {error.objection}; {advice}") from None

    def _refused(self, piece: "pa.Table") -> "dict[str, np.ndarray]":
        """Which cells of each column the model cannot take; not looked for where they are an error anyway."""
        from tessella.estimators import frames

        if self.unseen == "error":
            return {}
        frame = frames.read(piece)
        values = dict(zip(frame.names, frame.columns, strict=True))
        found = {}
        for column in self.loaded.flow.columns_:
            if column.name in values and column.name != self.ignored:
                refused = column.refused(values[column.name])
                if self.gaps:
                    refused = refused & ~frames.missing(values[column.name])
                found[column.name] = refused
        return found


@dataclass
class Tally:
    """What had to be done about the rows of a file, piece after piece."""

    checked: Checked
    rows: int = 0
    """Of the file."""
    refused: int = 0
    """Of them."""
    named: list[int] = field(default_factory=list)
    """The first of those."""
    cells: dict[str, int] = field(default_factory=dict)

    def add(self, rows: int, refused: Refused) -> None:
        """The next piece."""
        self.rows, self.refused = self.rows + rows, self.refused + len(refused.rows)
        self.named = (self.named + refused.rows)[:NAMED]
        for name, cells in refused.cells.items():
            self.cells[name] = self.cells.get(name, 0) + cells

    @property
    def said(self) -> dict[str, Any]:
        """For JSON: how many rows had such values, which, and in which columns."""
        return {"unseen": self.checked.unseen, "rows": self.refused, "first_rows": self.named, "cells": self.cells}

    def __str__(self) -> str:
        """What was done, in a line; nothing where there was nothing to do."""
        from tessella.data.tables.values import shown

        if not self.refused:
            return ""
        done = "left out" if self.checked.unseen == "skip" else "whose values were taken for missing"
        columns = ", ".join(f"{shown([name])} ({cells:,})" for name, cells in self.cells.items() if cells)
        more = ", ..." if self.refused > NAMED else ""
        named = ", ".join(f"{row:,}" for row in self.named) + more
        where = self.checked.file.place(self.named[0])
        return f"{self.refused:,} of {self.rows:,} rows {done}: {named} (the first: {where}); columns {columns}"
