"""Parquet files as tables in pieces: one file, or all those of a folder."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from tessella.data.tables.cells import Cells, Coded
from tessella.data.tables.values import shown
from tessella.estimators import frames
from tessella.folders import one_line

ENDING = ".parquet"


class RowGroups(NamedTuple):
    """Consecutive row groups of a file, which can be read without the others."""

    file: Path
    groups: tuple[int, ...]
    first: int
    """Place of their first row in the whole table."""
    rows: int

    def __str__(self) -> str:
        return f"{self.file} (rows {self.first} to {self.first + self.rows - 1} of the table)"

    def batches(self, rows: int) -> Iterator[Any]:
        """Arrow batches of at most so many rows, cut in the same way each time."""
        import pyarrow.parquet

        found = 0
        with readable(self.file):
            for batch in pyarrow.parquet.ParquetFile(self.file).iter_batches(rows, row_groups=self.groups):
                found += len(batch)
                yield batch
        if found != self.rows:
            raise ValueError(f"{self}: got {found} rows; expected {self.rows}, as when the table was opened")


class ParquetTable:
    """The row groups of a Parquet file, or of all files of a folder and those inside it, in the order of their names.

    Every file must have the same columns, of the same types. Names that begin with a dot or an underscore are skipped,
    as other programs do. A column with a dictionary is one of its values, unordered, as no piece knows all of them.

    Args:
        path: of the file or folder.
        left_out: columns that are not read.
    """

    def __init__(self, path: Path | str, left_out: Collection[str] = ()):
        self.path, self.left_out = Path(path), frozenset(left_out)
        self.files = parquet_files(self.path)
        self._metadata = [_metadata(file) for file in self.files]
        self._check_schemas()
        self._groups = [
            (file, group)
            for file, metadata in zip(self.files, self._metadata, strict=True)
            for group in range(metadata.num_row_groups)
        ]
        self.sizes = [
            metadata.row_group(i).num_rows for metadata in self._metadata for i in range(metadata.num_row_groups)
        ]

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [name for name in self._schema.names if name not in self.left_out]

    @cached_property
    def layout(self) -> frames.Layout:
        """That of an Arrow table."""
        return frames.read(self._plain_schema.empty_table()).layout

    @property
    def categorical(self) -> tuple[str, ...]:
        """Columns with a dictionary."""
        import pyarrow as pa

        return tuple(name for name in self.names if pa.types.is_dictionary(self._schema.field(name).type))

    @cached_property
    def digest(self) -> str:
        """Of the names, sizes and times of the files, and of their columns."""
        found = sha256(repr([self.names, str(self._schema), self.sizes]).encode())
        for file in self.files:
            about = file.stat()
            found.update(repr((file.name, about.st_size, about.st_mtime_ns)).encode())
        return found.hexdigest()

    def read(self, piece: int) -> list[Cells]:
        """The cells of a row group."""
        table = self.group(piece)
        return [_cells(name, table[name]) for name in table.column_names]

    def group(self, piece: int) -> Any:
        """A row group as an Arrow table."""
        import pyarrow.parquet

        file, group = self._groups[piece]
        with readable(file):
            return pyarrow.parquet.ParquetFile(file).read_row_group(group, columns=self.names)

    def parts(self, rows: int) -> list[RowGroups]:
        """All row groups in their order: of one file each, of so many rows at most where there are several."""
        found, first = list[RowGroups](), 0
        for (file, group), size in zip(self._groups, self.sizes, strict=True):
            last = found[-1] if found else None
            if last and last.file == file and last.rows + size <= rows:
                found[-1] = last._replace(groups=(*last.groups, group), rows=last.rows + size)
            else:
                found.append(RowGroups(file, (group,), first, size))
            first += size
        return found

    def table(self) -> Any:
        """All rows, as an Arrow table."""
        import pyarrow as pa

        found = list(map(self.group, range(len(self.sizes))))
        return pa.concat_tables(found) if found else self._schema.empty_table().select(self.names)

    def without(self, columns: Collection[str]) -> Self:
        """The same files, with some columns left out."""
        return type(self)(self.path, self.left_out | set(columns)) if columns else self

    @cached_property
    def _schema(self) -> Any:
        return _arrow_schema(self.files[0])

    @property
    def _plain_schema(self) -> Any:
        """Without dictionaries."""
        import pyarrow as pa

        fields = [self._schema.field(name) for name in self.names]
        return pa.schema([one.with_type(_undictionaried(one.type)) for one in fields])

    def _check_schemas(self) -> None:
        for file in self.files[1:]:
            schema = _arrow_schema(file)
            if schema.names != self._schema.names:
                raise ValueError(
                    f"{file}: got the columns {shown(schema.names)}; expected those of {self.files[0]}: "
                    f"{shown(self._schema.names)}"
                )
            for field, expected in zip(schema, self._schema, strict=True):
                if _undictionaried(field.type) != _undictionaried(expected.type):
                    raise ValueError(
                        f"{file}, column {field.name!r}: got {field.type}; expected {expected.type}, as in "
                        f"{self.files[0]}"
                    )


def parquet_files(path: Path) -> list[Path]:
    """The file, or those of the folder and of the folders in it, sorted by name."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    inside = (file for file in path.rglob("*") if file.suffix.lower() == ENDING)
    found = sorted(file for file in inside if not any(p[0] in "._" for p in file.relative_to(path).parts))
    if not found:
        raise FileNotFoundError(f"{path}: got a folder without {ENDING} files; expected at least one")
    return found


@contextmanager
def readable(file: Path) -> Iterator[None]:
    """Whatever Arrow says inside is an error about the file."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{file}: cannot be read ({one_line(error)}); expected a Parquet file") from error


def _metadata(file: Path) -> Any:
    import pyarrow.parquet

    with readable(file):
        return pyarrow.parquet.read_metadata(file)


def _arrow_schema(file: Path) -> Any:
    import pyarrow.parquet

    with readable(file):
        return pyarrow.parquet.read_schema(file)


def _undictionaried(dtype: Any) -> Any:
    import pyarrow as pa

    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _cells(name: str, column: Any) -> Cells:
    """The cells of an Arrow column: what plain values they are is what `frames.read` says."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds, dtype = pa.types, column.type
    if kinds.is_dictionary(dtype):
        return _cells(name, column.cast(dtype.value_type))
    if kinds.is_floating(dtype) or kinds.is_decimal(dtype):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    if kinds.is_integer(dtype) and not column.null_count:
        return np.asarray(column.to_numpy())
    if kinds.is_date(dtype):
        return np.asarray(column.cast(pa.date32()).to_numpy(), dtype="datetime64[D]")
    if kinds.is_timestamp(dtype):
        local = column if dtype.tz is None else pc.local_timestamp(column)
        return np.asarray(pc.floor_temporal(local, unit="millisecond").to_numpy(), dtype="datetime64[ms]")
    if kinds.is_integer(dtype) or kinds.is_boolean(dtype) or kinds.is_null(dtype) or dtype in _texts():
        return _coded(column)
    raise TypeError(
        f"column {name!r}: got {dtype}; expected booleans, numbers, text or dates; convert that column first, or leave "
        "it out"
    )


def _texts() -> tuple[Any, ...]:
    import pyarrow as pa

    return pa.string(), pa.large_string(), pa.string_view()


def _coded(column: Any) -> Coded:
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return Coded([None], np.zeros(len(column), dtype=np.int64))
    whole = column.combine_chunks().dictionary_encode()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.combine_chunks()
    values = whole.dictionary.to_pylist()
    place = whole.indices.fill_null(len(values)).to_numpy(zero_copy_only=False).astype(np.int32)
    return Coded([*values, *repeat(None, int(column.null_count > 0))], place)
