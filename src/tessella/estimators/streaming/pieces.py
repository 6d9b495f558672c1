"""What a table in pieces is."""

from collections.abc import Collection, Sequence
from typing import Protocol, Self, runtime_checkable

from tessella.data.tables.cells import Cells
from tessella.estimators.frames import Layout


@runtime_checkable
class Pieces(Protocol):
    """A table in pieces, each of which fits into memory and can be read again: the row groups of Parquet files."""

    @property
    def layout(self) -> Layout:
        """Of frames with its columns."""
        ...

    @property
    def categorical(self) -> tuple[str, ...]:
        """Columns that are said to be categories."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """Rows of each piece."""
        ...

    @property
    def digest(self) -> str:
        """What tells it from other tables, without reading them."""
        ...

    def read(self, piece: int) -> list[Cells]:
        """The columns of a piece, the same each time."""
        ...

    def without(self, columns: Collection[str]) -> Self:
        """The same table, some columns left out."""
        ...
