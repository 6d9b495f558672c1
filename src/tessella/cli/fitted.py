"""A model of `tessella fit` and a file of rows for it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tessella.cli.engines import EngineOptions, spread
from tessella.cli.files import CsvOptions, Schema, TableFile
from tessella.cli.loaded import Loaded
from tessella.cli.unseen import Checked, Refused, Tally, Unseen

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from tessella.estimators import TabularFlow
    from tessella.estimators.streaming import RowGroups


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


class Answer(NamedTuple):
    """What was found out about a piece."""

    value: Any
    rows: int
    refused: Refused


Question = Callable[["TabularFlow", Piece], Any]


@dataclass(frozen=True)
class Fitted:
    """A model, a file, how the model's own file was read, what it cannot take, what it did not, where it is asked."""

    loaded: Loaded
    file: TableFile
    schema: Schema
    checked: Checked
    tally: Tally
    engine: EngineOptions

    @property
    def flow(self) -> "TabularFlow":
        """The model."""
        return self.loaded.flow

    def answers(self, question: Question) -> Iterator[Any]:
        """To a question about each piece of the file, in their order; it may be larger than memory.

        Args:
            question: (model, piece) -> answer; a function with a name of its own, as other processes have to find it.
        """
        for answer in spread(partial(_answers, self, question), self.file.parts(), self.engine):
            self.tally.add(answer.rows, answer.refused)
            yield answer.value

    def say_unseen(self) -> None:
        """What was done about values that training did not see, where there are some."""
        from tessella.progress import say

        if line := str(self.tally):
            say(line)


def _answers(fitted: Fitted, question: Question, part: "RowGroups | None") -> Iterator[Answer]:
    """About the pieces of a part, in whatever process."""
    for first, raw in fitted.file.part_pieces(fitted.schema, part):
        table, kept, refused = fitted.checked.take(raw, first)
        with fitted.checked.naming_rows(first):
            value = question(fitted.flow, Piece(table, kept, first, raw))
        yield Answer(value, len(raw), refused)


def opened(
    model: Path,
    data: Path,
    csv: CsvOptions,
    unseen: Unseen,
    engine: EngineOptions,
    visible: bool = True,
    gaps: bool = False,
) -> Fitted:
    """Load a model for a file; what was found out about the file is said.

    Args:
        model: folder of the model.
        data: the file.
        csv: how it is written, where that is known.
        unseen, gaps: see `Checked`.
        engine: which works on it.
        visible: whether to say anything.
    """
    from tessella.progress import say

    file = TableFile(data if engine.engine == "local" else data.absolute(), csv, visible)
    if file.csv and engine.engine != "local":
        raise ValueError(
            f"{data}: got a CSV file for the engine {engine.engine}; expected Parquet, parts of which can be read alone"
        )
    loaded = Loaded(model)
    if visible and file.csv and not file.dialect.usual:
        say(f"{data}: {file.dialect}")
    schema = Schema.of_model(loaded.flow.schema_, loaded.flow.columns_)
    checked = Checked(loaded, file, unseen, gaps)
    return Fitted(loaded, file, schema, checked, Tally(checked), engine)


def seed_of(first: int, seed: int) -> int:
    """Of the draws for rows that begin at this one; those of the first have the seed that was asked for."""
    from tessella.training.randomness import derived_seed

    return derived_seed(seed, "part of a file", first) % 2**32 if first else seed
