"""Files of baskets: CSV or Parquet with two columns, or a basket in each line."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tessella.cli.files import KINDS, CsvOptions, Schema, TableFile

if TYPE_CHECKING:
    import pyarrow as pa


def read_baskets(path: Path, csv: CsvOptions, visible: bool = True) -> "pa.Table":
    """A table of two columns of texts, basket and item.

    Files that end in .csv or .parquet have two columns; in any other each line is a basket, whose items are separated
    by commas where there is one in the file, else by blanks, and baskets are called by their lines, from 1.
    """
    import pyarrow as pa

    if path.suffix.lower() not in KINDS:
        return _lines(path, csv.encoding or "utf-8")
    file = TableFile(path, csv, visible)
    table = file.read(Schema())
    if table.num_columns != 2:
        names = ", ".join(table.column_names[:8])
        raise ValueError(f"{path}: got {table.num_columns} columns ({names}); expected two, basket and item")
    for name in table.column_names:
        if table[name].null_count:
            row = table[name].is_null().to_pylist().index(True)
            raise ValueError(f"{file.place(row)}, column {name!r}: got an empty cell; expected none")
    return pa.table({name: table[name].cast(pa.string()) for name in table.column_names})


def _lines(path: Path, encoding: str) -> "pa.Table":
    import pyarrow as pa

    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        text = path.read_text(encoding=encoding)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {error}; say how it is encoded: --encoding latin-1") from None
    delimiter = "," if "," in text else None
    ids, items = [], []
    for number, line in enumerate(text.splitlines(), 1):
        for item in filter(None, map(str.strip, line.split(delimiter))):
            ids.append(str(number))
            items.append(item)
    return pa.table({"basket": pa.array(ids, pa.string()), "item": pa.array(items, pa.string())})


def as_known(item: str, known: Any) -> Any:
    """An item as the model knows it: models that were fitted in Python may know it as an integer."""
    digits = item.removeprefix("-").isdecimal()
    return int(item) if item not in known and digits and int(item) in known else item


@contextmanager
def warnings_said(visible: bool = True) -> Iterator[None]:
    """What an estimator warns of inside is said in a line each."""
    from tessella.progress import say

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        yield
    for one in found if visible else ():
        say(str(one.message))
