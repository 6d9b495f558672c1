"""CSV files as people write them."""

import datetime
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.edges.edges_for_tests import fitted

from tessella.cli.files import CsvOptions, Schema, TableFile
from tessella.estimators import TabularFlow

DAY = datetime.date

READ = {
    "plain": ("a,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}, ""),
    "semicolons": ("a;b\n1,5;x\n2,25;y\n", {"a": [1.5, 2.25], "b": ["x", "y"]}, "parted by semicolons.*decimal ','"),
    "tabs": ("a\tb\n1\tx\n2\ty\n", {"a": [1, 2], "b": ["x", "y"]}, "parted by tabs"),
    "bars": ("a|b\n1|x\n2|y\n", {"a": [1, 2], "b": ["x", "y"]}, "parted by vertical bars"),
    "commas in a semicolon's header": ("a, b;c\n1;x\n2;y\n", {"a, b": [1, 2], "c": ["x", "y"]}, "semicolons"),
    "byte order mark": ("\ufeffa,b\n1,x\n", {"a": [1], "b": ["x"]}, ""),
    "latin-1": ("a,b\n1,é\n2,ü\n".encode("latin-1"), {"a": [1, 2], "b": ["é", "ü"]}, "encoding cp1252"),
    "utf-16": ("a,b\n1,é\n2,ü\n".encode("utf-16"), {"a": [1, 2], "b": ["é", "ü"]}, "encoding utf-16"),
    "thousands": ('a,b\n"1,234",x\n12,y\n', {"a": [1234, 12], "b": ["x", "y"]}, "thousands parted by ','"),
    "points and commas": ("a;b\n1.234,5;x\n12,0;y\n", {"a": [1234.5, 12.0], "b": ["x", "y"]}, "thousands parted"),
    "another column decides": (
        "a;b\n1,234;0,5\n2,345;7,5\n",
        {"a": [1.234, 2.345], "b": [0.5, 7.5]},
        "'a': .*otherwise",
    ),
    "points in a semicolon's file": ("a;b\n1.234;x\n2.345;y\n", {"a": [1.234, 2.345]}, "semicolons"),
    "points that another column makes thousands": (
        "a;b\n1.234;0,5\n2.345;7,5\n",
        {"a": [1234, 2345]},
        "'a': .*otherwise",
    ),
    "days first": ("a,b\n31.12.2020,x\n01.02.2020,y\n", {"a": [DAY(2020, 12, 31), DAY(2020, 2, 1)]}, "day first"),
    "months first": ("a,b\n01/22/2020,x\n03/04/2020,y\n", {"a": [DAY(2020, 1, 22), DAY(2020, 3, 4)]}, "month first"),
    "days or months": (
        "a,b\n01/02/2020,x\n03/04/2020,y\n",
        {"a": [DAY(2020, 1, 2), DAY(2020, 3, 4)]},
        "otherwise, too",
    ),
    "no such day": ("a,b\n31.02.2020,x\n03.04.2020,y\n", {"a": ["31.02.2020", "03.04.2020"]}, ""),
    "instants": (
        "a,b\n2020-01-02T10:20Z,x\n2020-01-03,y\n",
        {"a": [datetime.datetime(2020, 1, 2, 10, 20), datetime.datetime(2020, 1, 3)]},
        "",
    ),
    "digits without end": ('a,b\n"1,234,567,890,123,456,789,000",x\n12345678901234567890,y\n', {"b": ["x", "y"]}, ""),
    "leading zeros": ("a,b\n01234,x\n02345,y\n", {"a": ["01234", "02345"]}, ""),
    "signs and powers": ("a,b\n+1e2,x\n-.5,y\n", {"a": [100.0, -0.5]}, ""),
    "empty text": ("a,b\n1,\n2,y\n", {"b": [None, "y"]}, ""),
    "words for missing": (
        "a,b\n?,x\n2,y\nNA,NA\n",
        {"a": [None, 2, None], "b": ["x", "y", "NA"]},
        "'a': '\\?', 'NA' taken",
    ),
    "booleans": ("a,b\ntrue,x\nFALSE,y\n", {"a": [True, False]}, ""),
    "an index": (",b\n0,x\n1,y\n", {"b": ["x", "y"]}, "column '': left out"),
    "nothing at all": ("a,b\n,x\n,y\n", {"b": ["x", "y"]}, "'a': left out, all of its cells are missing"),
}


@pytest.mark.parametrize("case", READ)
def test_cells_mean_what_they_say(case, tmp_path):
    content, expected, note = READ[case]
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table, schema, notes = TableFile(path).learn()
    found = table.to_pydict()
    assert {name: found[name] for name in expected} == expected
    assert re.search(note, " | ".join(notes)), notes
    assert bool(note) or not notes
    again = Schema.of_model(schema.to_json(), ())
    assert TableFile(path).read(again).equals(table), "by the schema that was kept"


REFUSED = {
    "empty": ("", {}, "got an empty file"),
    "no rows": ("a,b\n", {}, "got no rows"),
    "ragged": ("a,b\n1,2\n1,2,3\n", {}, "Row #3: Expected 2 columns, got 3"),
    "a name twice": ("a,a\n1,2\n", {}, "line 1: columns 'a' appear more than once"),
    "a long delimiter": ("a,b\n1,2\n", {"delimiter": "ab"}, "delimiter: got 'ab'; expected one character"),
    "no encoding": ("a,b\n1,2\n", {"encoding": "klingon"}, "encoding: got 'klingon'"),
    "10,000 columns": (",".join(map(str, range(10_000))) + "\n", {}, "columns: got 10,000; expected at most 2,000"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_named(case, tmp_path):
    content, options, message = REFUSED[case]
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        TableFile(tmp_path / "t.csv", CsvOptions(**options)).learn()


def test_a_late_cell_is_named_by_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,"two\nlines"\n\n2,y\nx,z\n')
    with pytest.raises(ValueError, match=r"t.csv, line 6, column 'a': got 'x'; expected a number"):
        TableFile(path).learn({"a": "count"})


def test_late_latin_letters_are_an_error_that_names_the_encoding(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(("a,b\n" + "1,x\n" * 300_000 + "1,é\n").encode("latin-1"))
    with pytest.raises(ValueError, match="not utf-8, try --encoding latin-1"):
        TableFile(path).learn()
    assert TableFile(path, CsvOptions(encoding="latin-1")).learn()[0]["b"][-1].as_py() == "é"


@pytest.mark.parametrize(
    "said", [{}, {"formats": 3, "left_out": {}}, {"formats": {"a": {"kind": "odd"}}, "left_out": {}}]
)
def test_a_schema_that_nobody_wrote_is_refused(said):
    with pytest.raises(ValueError, match="schema of the model: cannot be read"):
        Schema.of_model(said, ())


def test_options_override_the_guess(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b,c\n1;2,3\n")
    assert TableFile(path, CsvOptions(delimiter="semicolon")).learn()[0].column_names == ["a", "b,c"]


def test_identifiers_are_left_out_unless_declared(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,v\n" + "".join(f"u{i},{i % 3}\n" for i in range(100)))
    table, schema, notes = TableFile(path).learn()
    assert table.column_names == ["v"]
    assert "100 different texts in 100 rows" in schema.left_out["id"]
    assert "--types keeps it" in notes[0]
    assert TableFile(path).learn({"id": "categorical"})[0].column_names == ["id", "v"]


def test_too_many_categories_are_left_out_or_refused(tmp_path):
    names = np.repeat([f"u{i}" for i in range(25_000)], 3)
    pa.parquet.write_table(pa.table({"id": names, "v": np.arange(len(names)) % 3}), tmp_path / "t.parquet")
    schema = TableFile(tmp_path / "t.parquet").learn()[1]
    assert "more than the 20,000 categories" in schema.left_out["id"]
    with pytest.raises(ValueError, match="'id': got 25,000 different values; expected at most 20,000 categories"):
        TabularFlow(progress=False).fit(pd.DataFrame({"id": names, "v": 1}))


def test_a_file_that_changes_its_looks_is_read_by_the_schema_of_the_model(tmp_path):
    """Integers, then a fraction; numbers, then a word: each after the first block of the file."""
    path, rows = tmp_path / "t.csv", 40_000
    lines = [f"{i % 50},{i % 5},{'ab'[i % 2]}" for i in range(rows)]
    lines[-1] = "600.324,word,a"
    path.write_text("x,c,z\n" + "\n".join(lines) + "\n")
    flow = TabularFlow.load(fitted(path, tmp_path / "model"))
    schema = Schema.of_model(flow.schema_, flow.columns_)
    pieces = list(TableFile(path).pieces(schema))
    assert len(pieces) > 1
    assert flow.score_samples(pieces[-1][-5:]).shape == (5,)
    assert {str(piece.schema.field("c").type) for piece in pieces} == {"string"}


@pytest.mark.parametrize("kind", ["decimal", "index", "time", "duration"])
def test_types_of_parquet_are_supported_or_refused_by_name(kind, tmp_path):
    frame = {"v": pa.array([1, 2] * 10), "a": pa.array(["x", "y"] * 10)}
    if kind == "index":
        frame["__index_level_0__"] = pa.array(range(20))
    else:
        cast = {"decimal": pa.decimal128(21, 2), "time": pa.time32("s"), "duration": pa.duration("s")}[kind]
        frame["w"] = pa.array(range(20), pa.int32() if kind == "time" else pa.int64()).cast(cast)
    pa.parquet.write_table(pa.table(frame), tmp_path / "t.parquet")
    if kind in ("time", "duration"):
        with pytest.raises(TypeError, match=r"column 'w': .*convert that column"):
            fitted(tmp_path / "t.parquet", tmp_path / "model")
        return
    flow = TabularFlow.load(fitted(tmp_path / "t.parquet", tmp_path / "model"))
    drawn = flow.sample(3)
    assert drawn.column_names == ["v", "a", *(["w"] if kind == "decimal" else [])]
    assert kind != "decimal" or drawn.schema.field("w").type == pa.decimal128(21, 2)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_how_much_of_a_file_is_read_is_shown(name, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("tessella.progress.SECONDS", 0.0)
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=200_000), "b": np.arange(200_000) % 7})
    frame.to_csv(tmp_path / name, index=False) if name == "t.csv" else frame.to_parquet(tmp_path / name)
    _, schema, _ = TableFile(tmp_path / name).learn()
    assert re.search(rf"{name}, MB read: [1-9]/[1-9] \(", capfd.readouterr().err)
    TableFile(tmp_path / name, visible=False).read(schema)
    assert capfd.readouterr().err == ""
