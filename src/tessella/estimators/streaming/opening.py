"""What a user calls a table: as it is where it fits into memory, in pieces where it does not."""

from pathlib import Path
from typing import Any

from tessella.estimators.streaming.memory import budget, estimate
from tessella.estimators.streaming.parquet import ParquetTable


def opened(table: Any, memory: float | None) -> Any:
    """The frame that a Parquet file or folder holds, or its pieces if that takes more memory; anything else as it is.

    Args:
        table: a frame, a table in pieces or a survey of one, or the path of a Parquet file or folder.
        memory: gigabytes; None: see `budget`.
    """
    if not isinstance(table, str | Path):
        return table
    found = ParquetTable(table)
    return found.table() if estimate(len(found), len(found.names)) <= budget(memory) else found
