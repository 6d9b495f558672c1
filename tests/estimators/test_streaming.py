"""Tables larger than memory: what is learned piece by piece, and that memory does not grow with rows."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tests.estimators.frames_for_tests import mixed_columns, small_flow

from tessella.data.splitting import hashed
from tessella.estimators import TabularFlow, streaming
from tessella.estimators.streaming.survey import PARTS, part_ends, survey

ROWS = 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of a mixed table, with row groups of several sizes."""
    path = tmp_path_factory.mktemp("parquet")
    whole = table()
    for i, size in enumerate((300, 170, 999)):
        pq.write_table(whole.slice(1000 * i, 1000), path / f"part-{i}.parquet", row_group_size=size)
    (path / "_metadata").touch()
    return path


def table() -> pa.Table:
    columns = mixed_columns(ROWS) | {"gaps": [None if i % 7 == 0 else i % 5 for i in range(ROWS)]}
    whole = pa.table(columns)
    instants = pa.array(np.arange(ROWS) * 90_000_000, pa.timestamp("us", "Europe/Berlin"))
    return whole.append_column("when", instants).append_column("kind", whole["sex"].dictionary_encode())


def test_a_streamed_table_has_the_columns_of_the_whole_one(folder: Path):
    whole, streamed = small_flow(max_steps=2).fit(folder), small_flow(max_steps=2, memory=0.0).fit(folder)
    assert streamed.columns_ == whole.columns_
    assert streamed.density_ == "autoregressive"
    assert len(streamed.score_samples(table())) == ROWS
    drawn = streamed.sample(5)
    assert drawn.schema.field("when").type == pa.timestamp("us", "Europe/Berlin")
    assert drawn.column_names == table().column_names


def test_every_row_is_in_one_part_and_encoded_as_in_a_whole_table(folder: Path):
    flow = small_flow(max_steps=2, memory=0.0, test_fraction=0.2).fit(folder)
    pieces = streaming.ParquetTable(folder)
    found = survey(pieces, {}, flow.seed_, 0.1, 0.2)
    stream = streaming.TableStream(found, flow.encoding_)
    expected = flow.encoding_.join(*flow._encode(pieces.table()))
    part = np.searchsorted(found.ends[:2], hashed(np.arange(ROWS), flow.seed_), side="right")
    streamed = torch.cat([flow.encoding_.join(*stream.read(group)) for group in range(len(stream.sizes))])
    assert torch.equal(streamed, expected[part == PARTS.index("train")])
    for name in ("validation", "test"):
        places = flow.parts_[name]
        assert np.array_equal(np.sort(places), (part == PARTS.index(name)).nonzero()[0])
        kept = flow.encoding_.join(*found.batch(flow.encoding_, name))
        assert torch.equal(kept, expected[places])
    assert abs(len(flow.parts_["test"]) / ROWS - 0.2) < 0.03


@pytest.mark.parametrize("rows", [1, 150, 200, 10**6])
def test_parts_of_files_are_the_table_in_its_order(rows: int, tmp_path: Path):
    for i, size in enumerate((70, 40, 300)):
        pq.write_table(pa.table({"a": np.arange(200) + 200 * i}), tmp_path / f"{i}.parquet", row_group_size=size)
    table = streaming.ParquetTable(tmp_path)
    parts = table.parts(rows)
    assert all(part.rows <= rows or len(part.groups) == 1 for part in parts)
    found = [[x for batch in part.batches(90) for x in batch["a"].to_pylist()] for part in parts]
    assert [(part.first, part.rows) for part in parts] == [(values[0], len(values)) for values in found]
    assert [value for values in found for value in values] == list(range(600))
    pq.write_table(pa.table({"a": np.arange(150)}), tmp_path / "0.parquet", row_group_size=70)
    with pytest.raises(ValueError, match=r"0\.parquet.*as when the table was opened"):
        [*table.parts(10**6)[0].batches(90)]


def test_parts_that_are_kept_are_bounded():
    for rows, columns in ((10**9, 1000), (10**9, 5), (10**4, 5)):
        tested, validated, kept = part_ends(rows, columns, validation=0.1, test=0.1)
        assert rows * columns * kept <= 3 * 2**23 * 1.01
        assert rows * tested <= 50_000 >= rows * (validated - tested)


def test_a_streamed_fit_continues_where_it_was_and_begins_anew_with_other_files(folder: Path, tmp_path: Path):
    def fitted(source: Path, steps: int = 12) -> TabularFlow:
        flow = small_flow(memory=0.0, max_steps=steps, threads=1)
        return flow.fit_resumable(source, tmp_path / "training")

    one, again = fitted(folder), fitted(folder)
    assert again.history_ == one.history_  # it was over: not a second is added
    other = tmp_path / "other.parquet"
    pq.write_table(table().slice(0, 2500), other, row_group_size=400)
    assert fitted(other).history_ != one.history_


def test_a_million_categories_must_be_declared(tmp_path: Path):
    names = np.arange(21_000).astype(str)
    pq.write_table(pa.table({"name": np.tile(names, 2), "v": np.arange(42_000) % 3}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="'name': got more than 20,000 different values; expected at most 20,000"):
        small_flow(memory=0.0).fit(tmp_path)
    flow = small_flow(column_types={"name": "categorical"}, memory=0.0, max_steps=1).fit(tmp_path)
    assert len(flow.columns_[0].categories) == 21_000


def _empty(path: Path) -> str:
    (path / "notes.txt").touch()
    return "got a folder without .parquet files"


def _other_names(path: Path) -> str:
    pq.write_table(pa.table({"a": [1, 2]}), path / "1.parquet")
    pq.write_table(pa.table({"b": [1, 2]}), path / "2.parquet")
    return "2.parquet: got the columns 'b'; expected those of .*1.parquet: 'a'"


def _other_types(path: Path) -> str:
    pq.write_table(pa.table({"a": [1, 2]}), path / "1.parquet")
    pq.write_table(pa.table({"a": ["x", "y"]}), path / "2.parquet")
    return "2.parquet, column 'a': got string; expected int64, as in .*1.parquet"


def _corrupt(path: Path) -> str:
    pq.write_table(pa.table({"a": [1, 2]}), path / "1.parquet")
    (path / "2.parquet").write_bytes(b"PAR1 but no table")
    return "2.parquet: cannot be read .*; expected a Parquet file"


def _damaged_inside(path: Path) -> str:
    pq.write_table(pa.table({"a": np.arange(5000)}), path / "1.parquet")
    content = bytearray((path / "1.parquet").read_bytes())
    content[4:400] = b"\xff" * 396
    (path / "1.parquet").write_bytes(content)
    return "1.parquet: cannot be read"


def _lists(path: Path) -> str:
    pq.write_table(pa.table({"a": [[1], [2]], "b": [1, 2]}), path / "1.parquet")
    return "column 'a': got list<.*; expected booleans, numbers, text or dates"


def _no_rows(path: Path) -> str:
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), path / "1.parquet")
    return "Found 0 sample"


def _nothing_there(path: Path) -> str:
    pq.write_table(pa.table({"a": pa.array([None, None], pa.float64()), "b": [1, 2]}), path / "1.parquet")
    return "column 'a': all 2 values are missing"


FOLDERS = [_empty, _other_names, _other_types, _corrupt, _damaged_inside, _lists, _no_rows, _nothing_there]


@pytest.mark.parametrize("make", FOLDERS, ids=lambda make: make.__name__.strip("_"))
def test_a_bad_folder_is_refused_by_name(make, tmp_path: Path):
    message = make(tmp_path)
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        small_flow(memory=0.0, validation_fraction=0.5).fit(tmp_path)


def test_settings_that_cannot_be(folder: Path):
    with pytest.raises(ValueError, match="density: got 'blocks' for a table that is larger than memory"):
        small_flow(memory=0.0, density="blocks").fit(folder)
    with pytest.raises(ValueError, match="memory: got -1; expected gigabytes"):
        small_flow(memory=-1).fit(folder)


SCRIPT = """
import resource, sys
from pathlib import Path
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.estimators.frames_for_tests import small_flow
import tessella.estimators.streaming.survey  # the function has its name
survey = sys.modules["tessella.estimators.streaming.survey"]
survey.HELD_OUT, survey.SAMPLE = 5_000, 20_000

def write(folder, rows, group=50_000):
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(rows // group):
        z = rng.standard_normal(group)
        columns = {"a": rng.integers(0, 300, group).astype(str), "x": z + rng.standard_normal(group), "b": z > 0}
        pq.write_table(pa.table(columns | {"n": rng.poisson(9, group)}), folder / f"{i:03}.parquet")
    return folder

def megabytes(rows):
    flow = small_flow(memory=0.01, max_steps=20).fit(write(Path(sys.argv[1]) / str(rows), rows))
    assert flow.best_validation_ < flow.initial_validation_
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

print(*map(megabytes, (100_000, 700_000)))
"""


def test_memory_does_not_grow_with_rows(tmp_path: Path):
    """Seven times 100,000 rows: as a whole they would take 200 MB more."""
    said = subprocess.check_output([sys.executable, "-c", SCRIPT, str(tmp_path)], text=True).split()
    few, many = map(float, said)
    assert many < few + 40
