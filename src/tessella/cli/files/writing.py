"""Tables to files, which are there when they are whole."""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
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
    with writing(path) as write:
        write(table)


@contextmanager
def writing(path: Path | None) -> "Iterator[Callable[[pa.Table], None]]":
    """A function that writes tables of the same columns one below the other: to a file, there when it is whole.

    Args:
        path: of the file, CSV or Parquet by its ending; CSV to standard output without one.
    """
    with ExitStack() as stack:
        target = stack.enter_context(replacing(path)) if path else sys.stdout.buffer
        parquet = path is not None and ending(path) != ".csv"
        rows, writer, schema = 0, None, None

        def write(table: "pa.Table") -> None:
            nonlocal rows, writer, schema
            import pyarrow.csv
            import pyarrow.parquet

            if writer is None:
                opened = pyarrow.parquet.ParquetWriter if parquet else pyarrow.csv.CSVWriter
                schema = table.schema
                writer = stack.enter_context(opened(target, schema))
            writer.write_table(table.cast(schema))
            rows += len(table)

        yield write
    if path is not None:
        print(f"{rows:,} rows: {path}")


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
