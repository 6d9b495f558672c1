"""A model of `tessella fit` and a file of rows for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tessella.cli.files import CsvOptions, Schema, TableFile
from tessella.cli.unseen import Checked, Unseen

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from tessella.estimators import TabularFlow


@dataclass(frozen=True)
class Fitted:
    """A model, a file, how the model's own file was read, and what the model cannot take."""

    flow: "TabularFlow"
    file: TableFile
    schema: Schema
    checked: Checked

    def pieces(self) -> "Iterator[tuple[pa.Table, np.ndarray, int]]":
        """Pieces of the file that the model can take, which of their rows are left, and where each begins."""
        for piece in self.file.pieces(self.schema):
            first = self.checked.first
            yield *self.checked.take(piece), first

    def whole(self) -> "tuple[pa.Table, np.ndarray]":
        """All of it."""
        return self.checked.take(self.file.read(self.schema))

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
