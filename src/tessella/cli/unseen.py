"""Cells of a file that a model cannot take: an error, taken for missing, or their rows left out."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from tessella.cli.files import TableFile

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from tessella.estimators import TabularFlow

Unseen = Literal["error", "missing", "skip"]
NAMED = 10  # rows that a message names


class Checked:
    """The rows of a file as a model takes them, piece after piece, and what had to be done about some.

    Args:
        flow: the model.
        file: which the pieces come from.
        unseen: what to do about a value that training did not see and the model gives no probability.
        gaps: whether a missing value is fine wherever it is, since it will be asked for.
    """

    def __init__(self, flow: "TabularFlow", file: TableFile, unseen: Unseen, gaps: bool = False):
        self.flow, self.file, self.unseen, self.gaps = flow, file, unseen, gaps
        self.first, self.rows = 0, list[int]()
        self.ignored = ""  # a column that makes no difference
        self.cells: dict[str, int] = {}

    def take(self, piece: "pa.Table") -> "tuple[pa.Table, np.ndarray]":
        """The next piece without what the model cannot take, and which of its rows are left, (rows,)."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        kept = np.ones(len(piece), dtype=bool)
        for name, refused in self._refused(piece).items():
            self.cells[name] = self.cells.get(name, 0) + int(refused.sum())
            kept &= ~refused
            if self.unseen == "missing":
                cells = pc.if_else(pa.array(refused), None, piece[name])
                piece = piece.set_column(piece.column_names.index(name), name, cells)
        self.rows += (self.first + np.flatnonzero(~kept)).tolist()
        self.first += len(piece)
        if self.unseen == "missing":
            return piece, np.ones(len(piece), dtype=bool)
        return piece.filter(pa.array(kept)), kept

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

    @property
    def said(self) -> dict[str, Any]:
        """For JSON: how many rows had such values, which, and in which columns."""
        return {"unseen": self.unseen, "rows": len(self.rows), "first_rows": self.rows[:NAMED], "cells": self.cells}

    def __str__(self) -> str:
        """What was done, in a line; nothing where there was nothing to do."""
        from tessella.data.tables.values import shown

        if not self.rows:
            return ""
        done = "left out" if self.unseen == "skip" else "whose values were taken for missing"
        columns = ", ".join(f"{shown([name])} ({cells:,})" for name, cells in self.cells.items() if cells)
        more = ", ..." if len(self.rows) > NAMED else ""
        named = ", ".join(f"{row:,}" for row in self.rows[:NAMED]) + more
        where = self.file.place(self.rows[0])
        return f"{len(self.rows):,} of {self.first:,} rows {done}: {named} (the first: {where}); columns {columns}"

    def _refused(self, piece: "pa.Table") -> "dict[str, np.ndarray]":
        """Which cells of each column the model cannot take; not looked for where they are an error anyway."""
        from tessella.estimators import frames

        if self.unseen == "error":
            return {}
        frame = frames.read(piece)
        values = dict(zip(frame.names, frame.columns, strict=True))
        found = {}
        for column in self.flow.columns_:
            if column.name in values and column.name != self.ignored:
                refused = column.refused(values[column.name])
                if self.gaps:
                    refused = refused & ~frames.missing(values[column.name])
                found[column.name] = refused
        return found
