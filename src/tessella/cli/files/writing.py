"""Tables to files, which are there when they are whole."""

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tessella.cli.files.reading import ending

if TYPE_CHECKING:
    import pyarrow as pa

    from tessella.data import Column

Formulas = Literal["auto", "escape", "keep"]
FORMULA = r"^[=+\-@\t\r]"
PART = ".part"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside the target to write to; it takes the target's place at the end, or goes where there is none."""
    part = path.with_name(path.name + PART)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_table(table: "pa.Table", path: Path | None) -> None:
    """To a file by its ending; as CSV to standard output without one."""
    import pyarrow.csv
    import pyarrow.parquet

    if path is None:
        pyarrow.csv.write_csv(table, sys.stdout.buffer)
        return
    write = pyarrow.csv.write_csv if ending(path) == ".csv" else pyarrow.parquet.write_table
    with replacing(path) as part:
        write(table, part)
    print(f"{len(table):,} rows: {path}")


def escaped(table: "pa.Table", formulas: Formulas, trusted: Collection[str]) -> "pa.Table":
    """With a quotation mark before texts that a spreadsheet would take for formulas (they begin with = + - @).

    Args:
        table: to be written.
        formulas: "escape" does it in all columns of text, "keep" in none, "auto" in those that are not trusted.
        trusted: columns whose training values were such texts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, name in enumerate(table.column_names):
        skipped = formulas == "keep" or (formulas == "auto" and name in trusted)
        if skipped or not pa.types.is_string(table.schema.field(name).type):
            continue
        texts = table[name]
        risky = pc.match_substring_regex(texts, FORMULA)
        table = table.set_column(place, name, pc.if_else(risky, pc.binary_join_element_wise("'", texts, ""), texts))
    return table


def with_formulas(columns: "Collection[Column]") -> set[str]:
    """Columns some of whose categories look like formulas."""
    return {column.name for column in columns if any(map(is_formula, column.categories))}


def is_formula(value: object) -> bool:
    """Whether a spreadsheet would take it for one.

    >>> is_formula("=1+1"), is_formula("milk"), is_formula(-1)
    (True, False, False)
    """
    return isinstance(value, str) and value.startswith(tuple("=+-@\t\r"))
