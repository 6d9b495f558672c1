"""A small table of every kind of column, a model of it, and the command line inside this process."""

import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tessella.cli import main
from tessella.cli.files import TableFile
from tessella.estimators import TabularFlow


def write(path: Path, rows: Iterable[Iterable[Any]], header: str) -> Path:
    path.write_text(header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def rows_of_things(rows: int, seed: int = 0) -> list[list[Any]]:
    """Colour, size, weight, member, and note, which is sometimes missing."""
    draw, found = random.Random(seed), []
    for _ in range(rows):
        colour = draw.choice(["red", "green", "blue"])
        weight = round(draw.gauss(10 if colour == "red" else 50, 2), 3)
        found.append([colour, draw.randrange(4), weight, str(draw.random() < 0.3).lower(), draw.choice(["", "late"])])
    return found


HEADER = "colour,size,weight,member,note"


def fitted(path: Path, folder: Path, **options: Any) -> Path:
    """A model that learned little, in no time, saved as `tessella fit` does."""
    table, schema, _ = TableFile(path).learn()
    flow = TabularFlow(width=8, max_steps=2, density="autoregressive", device="cpu", threads=1, random_state=0)
    flow.set_params(progress=False, **options).fit(table)
    flow.schema_ = schema.to_json()
    flow.save(folder)
    return folder


def things(rows: int = 600) -> pa.Table:
    """The same, with numbers that are sometimes missing, and names."""
    columns = zip(*rows_of_things(rows), strict=True)
    table = pa.table({name: list(values) for name, values in zip(HEADER.split(","), columns, strict=True)})
    gaps = pa.array([None if i % 9 == 0 else float(i % 40) for i in range(rows)])
    return table.append_column("gaps", gaps).append_column("id", pa.array([f"thing {i}" for i in range(rows)]))


def folder_of_things(path: Path) -> Path:
    """`things` in three files of three row groups each, in path/data; a model in path/model."""
    data = path / "data"
    data.mkdir()
    for i in range(3):
        pq.write_table(things().slice(200 * i, 200), data / f"{i}.parquet", row_group_size=70)
    fitted(data, path / "model")
    return data


class Tessella:
    """`tessella ARGUMENTS`, here and now: its exit code, what it printed and what it said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
        self.monkeypatch, self.capfd = monkeypatch, capfd

    def __call__(self, *arguments: Any, expect: int = 0) -> str:
        self.monkeypatch.setattr(sys, "argv", ["tessella", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as done:
            code = int(done.code or 0)
        self.out, self.err = self.capfd.readouterr()
        assert code == expect, self.out + self.err
        assert "Traceback" not in self.err
        return self.out + self.err
