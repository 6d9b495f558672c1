"""CSV and Parquet files as Arrow tables, whole or in pieces, by a schema."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from tessella.cli.files.dialect import CsvOptions, Dialect, detect, line_of
from tessella.cli.files.formats import TEXT
from tessella.cli.files.schema import Inference, Schema, columns_to_leave_out, sketches_to_leave_out

if TYPE_CHECKING:
    import pyarrow as pa

    from tessella.estimators.streaming import ParquetTable, RowGroups, Survey

ROWS_AT_ONCE = 20_000
ROWS_OF_PART = 100_000
BYTES_AT_ONCE = 2**22
MEGABYTE = 10**6
KINDS = (".csv", ".parquet")
Part = TypeVar("Part")


class TableFile:
    """A CSV or Parquet file, or a folder of Parquet files.

    Args:
        path: of the file or folder, which must be there.
        options: how a CSV file is written, where that is known.
        visible: whether to show how much has been read.
    """

    def __init__(self, path: Path, options: CsvOptions | None = None, visible: bool = True):
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        self.path, self.csv, self._options = path, not path.is_dir() and ending(path) == ".csv", options or CsvOptions()
        files = [path] if self.csv else self.parquet.files
        self._visible, self._size, self._done = visible, sum(file.stat().st_size for file in files), 0
        self._at_once = ROWS_AT_ONCE

    def __getstate__(self) -> dict[str, Any]:
        """For other processes, which need not open all files again."""
        return {name: value for name, value in (self.__dict__ | {"rows": self.rows}).items() if name != "parquet"}

    @cached_property
    def parquet(self) -> "ParquetTable":
        """What is no CSV file."""
        from tessella.estimators.streaming import ParquetTable

        return ParquetTable(self.path)

    @cached_property
    def dialect(self) -> Dialect:
        """Of a CSV file."""
        return detect(self.path, self._options)

    def learn(self, declared: Mapping[str, str] | None = None) -> "tuple[pa.Table, Schema, list[str]]":
        """The whole file, how it was read, found out from all of its cells, and what a user should know about that.

        Args:
            declared: types of some columns.
        """
        import pyarrow as pa

        from tessella.estimators.frames import check_width
        from tessella.progress import each

        known = declared or {}
        check_width(len(self.dialect.names if self.csv else self.parquet.names))
        pieces = self._watched(self._raw_pieces())
        if not pieces:
            raise ValueError(f"{self.path}: got no rows; expected at least two")
        notes, formats = [], {}
        if self.csv:
            found = Inference(pa.concat_tables(pieces), known, self.dialect.delimiter, self._visible)
            formats = found.schema_formats()
            notes = ([] if self.dialect.usual else [f"{self.path}: {self.dialect}"]) + list(found.notes())
        table = pa.concat_tables(self.pieces(Schema(formats), each(pieces, "parts of the file", self._visible)))
        left_out = columns_to_leave_out(table, known)
        notes += [f"column {name!r}: left out, {why}" for name, why in left_out.items()]
        schema = Schema(formats, left_out)
        return table.drop_columns(list(left_out)), schema, notes

    def larger_than(self, memory: float | None) -> bool:
        """Whether it has to be streamed, since fitted as a whole it would take more gigabytes; CSV files never are."""
        from tessella.estimators.streaming import budget, estimate

        return not self.csv and estimate(self.rows, len(self.parquet.names)) > budget(memory)

    def survey(
        self, declared: Mapping[str, str] | None, seed: int, validation: float, test: float
    ) -> "tuple[Survey, Schema, list[str]]":
        """`learn`, in one pass that leaves the table where it is.

        Args:
            declared: types of some columns.
            seed: of the parts of the table.
            validation, test: shares of the rows.
        """
        from tessella.estimators.streaming import survey

        known = dict.fromkeys(self.parquet.categorical, "categorical") | dict(declared or {})
        found = survey(self.parquet, known, seed, validation, test, self._visible)
        left_out = sketches_to_leave_out(found.sketches, known)
        notes = [f"column {name!r}: left out, {why}" for name, why in left_out.items()]
        return found.without(left_out), Schema({}, left_out), notes

    def read(self, schema: Schema) -> "pa.Table":
        """The whole file by a schema."""
        import pyarrow as pa

        pieces = self._watched(self.pieces(schema))
        return pa.concat_tables(pieces) if pieces else pa.table({name: [] for name in schema.formats})

    def parts(self) -> "list[RowGroups | None]":
        """What can be read by itself, in the order of the rows; None is the whole of a CSV file."""
        return [None] if self.csv else [*self.parquet.parts(ROWS_OF_PART)]

    def part_pieces(self, schema: Schema, part: "RowGroups | None") -> "Iterator[tuple[int, pa.Table]]":
        """A part in pieces by a schema, each with the place of its first row; the same pieces each time."""
        first = part.first if part else 0
        for piece in self.pieces(schema, self._raw_pieces(part)):
            yield first, piece
            first += len(piece)

    def pieces(self, schema: Schema, raw: "Iterable[pa.Table] | None" = None) -> "Iterator[pa.Table]":
        """The file in pieces by a schema, for files larger than memory; or what was read of it already."""
        first = 0
        for piece in self._raw_pieces() if raw is None else raw:
            yield self._converted(piece, schema, first)
            first += len(piece)

    @cached_property
    def rows(self) -> int:
        """How many there are; of a CSV file about, since a cell may have several lines."""
        if not self.csv:
            return len(self.parquet)
        with self.path.open("rb") as file:
            blocks = self._watched(self._counted_lines(file))
        return max(0, sum(blocks) - 1)  # without the header

    def place(self, row: int) -> str:
        """Where a row is, for messages; rows are counted from 0."""
        return f"{self.path}, line {line_of(self.path, self.dialect, row)}" if self.csv else f"{self.path}, row {row}"

    def _watched(self, parts: Iterator[Part]) -> list[Part]:
        """All parts of the file, and how much of it is read meanwhile."""
        from tessella.progress import Progress

        found = []
        with Progress(f"{self.path.name}, MB read", -(-self._size // MEGABYTE), self._visible, keep=False) as progress:
            for part in parts:
                found.append(part)
                progress.move(self._done // MEGABYTE)
        return found

    def _counted_lines(self, file: IO[bytes]) -> Iterator[int]:
        """Of each block."""
        self._done = 0
        for block in iter(lambda: file.read(BYTES_AT_ONCE), b""):
            self._done += len(block)
            yield block.count(b"\n")

    def _raw_pieces(self, part: "RowGroups | None" = None) -> "Iterator[pa.Table]":
        """Pieces as they are in the file, or a part of it: every cell of a CSV file a text."""
        import pyarrow as pa

        try:
            for batch in self._batches(part):
                cut = (batch.slice(i, self._at_once) for i in range(0, len(batch), self._at_once))
                yield from (pa.Table.from_batches([one]) for one in cut)
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path}: {error}; say how it is encoded: --encoding latin-1") from None
        except pa.ArrowInvalid as error:
            encoded = f"; it is not {self.dialect.encoding}, try --encoding latin-1" if "UTF8" in str(error) else ""
            raise ValueError(f"{self.path}: {error}{encoded}") from None

    def _batches(self, part: "RowGroups | None") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa
        import pyarrow.csv

        self._done = 0
        if not self.csv:
            for groups in [part] if part else self.parquet.parts(ROWS_OF_PART):
                for batch in groups.batches(self._at_once):
                    self._done += self._size * len(batch) // self.rows
                    yield batch
            return
        dialect = self.dialect
        read = pyarrow.csv.ReadOptions(use_threads=False, encoding=dialect.encoding, block_size=BYTES_AT_ONCE)
        parse = pyarrow.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)
        texts = dict.fromkeys(dialect.names, pa.string())
        convert = pyarrow.csv.ConvertOptions(column_types=texts, null_values=[""], strings_can_be_null=True)
        with pa.OSFile(str(self.path)) as file:
            for batch in pyarrow.csv.open_csv(file, read, parse, convert):
                self._done = self._size if file.closed else file.tell()
                yield batch

    def _converted(self, piece: "pa.Table", schema: Schema, first: int) -> "pa.Table":
        """A piece whose first row is that of the file, by a schema."""
        from tessella.data.tables.values import shown

        left_out = [name for name in piece.column_names if name in schema.left_out]
        piece = piece.drop_columns(left_out)
        if not self.csv:
            return piece
        for place, name in enumerate(piece.column_names):
            form, texts = schema.formats.get(name, TEXT), piece[name]
            values = form.parse(texts)
            wrong = form.misread(texts, values)
            if wrong is not None:
                got = shown([texts[wrong].as_py()])
                raise ValueError(f"{self.place(first + wrong)}, column {name!r}: got {got}; expected {form.expected}")
            piece = piece.set_column(place, name, values)
        return piece


def read_table(path: Path, schema: Schema | None = None) -> Any:
    """The whole file, by a schema, or by what its cells look like, which is said where it is not plain."""
    from tessella.progress import say

    if schema is not None:
        return TableFile(path).read(schema)
    table, _, notes = TableFile(path).learn()
    for note in notes:
        say(note)
    return table


def ending(path: Path) -> str:
    """How the name of a table's file ends."""
    found = path.suffix.lower()
    if found not in KINDS:
        raise ValueError(f"{path}: got a file that ends in {found or 'nothing'}; expected {' or '.join(KINDS)}")
    return found
