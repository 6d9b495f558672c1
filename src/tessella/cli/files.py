"""CSV and Parquet files as Arrow tables, whole or in pieces."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 20_000
KINDS = (".csv", ".parquet")


def read_table(path: Path) -> "pa.Table":
    """The whole file."""
    import pyarrow.csv
    import pyarrow.parquet

    return pyarrow.csv.read_csv(path) if _kind(path) == ".csv" else pyarrow.parquet.read_table(path)


def read_pieces(path: Path) -> "Iterator[pa.Table]":
    """The file in pieces, for files larger than memory; types of a CSV's columns are those of its first piece."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if _kind(path) == ".csv":
        batches = iter(pyarrow.csv.open_csv(path))
    else:
        batches = pyarrow.parquet.ParquetFile(path).iter_batches(ROWS_AT_ONCE)
    for batch in batches:
        yield from (pa.Table.from_batches([batch.slice(i, ROWS_AT_ONCE)]) for i in range(0, len(batch), ROWS_AT_ONCE))


def count_rows(path: Path) -> int | None:
    """Rows of a Parquet file; None of a CSV file, which would have to be read for that."""
    import pyarrow.parquet

    return pyarrow.parquet.read_metadata(path).num_rows if _kind(path) == ".parquet" else None


def write_table(table: "pa.Table", path: Path | None) -> None:
    """To a file by its ending; as CSV to standard output without one."""
    import pyarrow.csv
    import pyarrow.parquet

    if path is None:
        pyarrow.csv.write_csv(table, sys.stdout.buffer)
        return
    write = pyarrow.csv.write_csv if _ending(path) == ".csv" else pyarrow.parquet.write_table
    write(table, path)
    print(f"{len(table):,} rows: {path}")


def _kind(path: Path) -> str:
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    return _ending(path)


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in KINDS:
        raise ValueError(f"{path}: got a file that ends in {ending or 'nothing'}; expected {' or '.join(KINDS)}")
    return ending
