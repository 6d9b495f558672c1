"""A model of `tessella fit` and a file of rows for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tessella.cli.files import CsvOptions, Schema, TableFile
from tessella.cli.unseen import Checked, Unseen

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from tessella.estimators import TabularFlow


class Piece(NamedTuple):
    """Some rows of a file."""

    table: "pa.Table"
    """What the model can take of them."""
    kept: "np.ndarray"
    """Which of the rows those are."""
    first: int
    """Where in the file they begin."""
    raw: "pa.Table"
    """The rows as they are in the file."""


@dataclass(frozen=True)
class Fitted:
    """A model, a file, how the model's own file was read, and what the model cannot take."""

    flow: "TabularFlow"
    file: TableFile
    schema: Schema
    checked: Checked

    def pieces(self) -> Iterator[Piece]:
        """The file, some rows at a time; it may be larger than memory."""
        for raw in self.file.pieces(self.schema):
            first = self.checked.first
            table, kept = self.checked.take(raw)
            yield Piece(table, kept, first, raw)

    def say_unseen(self) -> None:
        """What was done about values that training did not see, where there are some."""
        from tessella.progress import say

        if line := str(self.checked):
            say(line)


def opened(
    model: Path, data: Path, csv: CsvOptions, unseen: Unseen, visible: bool = True, gaps: bool = False
) -> Fitted:
    """Load a model for a file; what was found out about the file is said.

    Args:
        model: folder of the model.
        data: the file.
        csv: how it is written, where that is known.
        unseen, gaps: see `Checked`.
        visible: whether to say anything.
    """
    from tessella.estimators import TabularFlow
    from tessella.progress import say

    file = TableFile(data, csv, visible)
    flow = TabularFlow.load(model)
    if visible and file.csv and not file.dialect.usual:
        say(f"{data}: {file.dialect}")
    schema = Schema.of_model(flow.schema_, flow.columns_)
    return Fitted(flow, file, schema, Checked(flow, file, unseen, gaps))


def seed_of(part: int, seed: int) -> int:
    """Of the draws for a part of the rows; the first has the seed that was asked for."""
    from tessella.training.randomness import derived_seed

    return derived_seed(seed, "part of a file", part) % 2**32 if part else seed
