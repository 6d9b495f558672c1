"""The table that a run is about: by name from the catalogue, or a file of the user's own."""

from pathlib import Path
from typing import TYPE_CHECKING

from tessella.cli.files import KINDS, read_table

if TYPE_CHECKING:
    from tessella.data import Encoding, Table
    from tessella.runs import DataConfig


def find_table(data: "DataConfig", encoding: "Encoding | None" = None) -> "Table":
    """A table of the catalogue, or a CSV or Parquet file, split by a fixed seed.

    Args:
        data: which.
        encoding: what the columns of a file mean; found out from its values without it.
    """
    from tessella.data import load_table

    path = Path(data.name)
    if path.suffix.lower() not in KINDS:
        return load_table(data.name, simulated=data.simulated, joined=data.joined)
    return _own_table(path, encoding)


def _own_table(path: Path, encoding: "Encoding | None") -> "Table":
    from tessella.data import table_of
    from tessella.data.tables.columns import learn
    from tessella.estimators import frames

    frame = frames.read(read_table(path))
    frames.check_rows(frame, least=20)
    values = dict(zip(frame.names, frame.columns, strict=True))
    if encoding is None:
        columns = [learn(name, column, None, frame.orders.get(name)) for name, column in values.items()]
    else:
        columns = list(encoding.columns)
    missing = [column.name for column in columns if column.name not in values]
    if missing:
        raise ValueError(f"{path}: has no column {missing[0]!r}; expected those of the run's own table")
    return table_of(path.stem, columns, [values[column.name] for column in columns])
