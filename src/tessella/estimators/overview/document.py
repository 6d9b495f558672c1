"""What a report shows of a fitted table, as plain data, and its file."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self, TypedDict

from tessella.estimators.overview.cell_maps import CellMap
from tessella.estimators.overview.comparison import Compared
from tessella.estimators.overview.fidelity import Association, Marginal
from tessella.estimators.overview.telling import Telling
from tessella.folders import BrokenFolderError, interpreting, read_json, write_whole

FILE, FORMAT = "overview.json", 4


class ColumnSummary(TypedDict):
    """What was learned about a column before training; it has 0 categories if it holds numbers."""

    name: str
    kind: str
    categories: int
    missing: float
    measure: str
    """What the likelihood of its numbers is made of: masses on a grid, a density, masses on single values."""


class Reason(TypedDict):
    """A column of an odd row: by how many nats the row would be likelier with an ordinary value there."""

    column: str
    value: str
    contribution: float


class OddRow(TypedDict):
    """A row of the table, by its position, with its log-likelihood in nats."""

    row: int
    score: float
    reasons: list[Reason]
    values: list[str]


class Learning(TypedDict):
    """What training began with, in words; mean -log P of the validation rows then and in the end, nats per row."""

    start: str
    before: float
    after: float


@dataclass(frozen=True)
class Overview:
    """A fitted table at a glance; every field is made of JSON's types."""

    version: str
    rows: int
    parts: dict[str, int]
    columns: list[ColumnSummary]
    held_out: str
    """The part that nothing was learned from: "test", or "validation" where there is no test part."""
    scored_rows: int
    model: str
    """What the model is, in words."""
    exact: bool
    """Whether its scores are likelihoods; else bounds from `samples` draws a row."""
    samples: int
    learning: Learning
    likelihoods: list[Compared]
    seconds: float
    steps: int
    stopped: str
    curve: list[dict[str, float]]
    real_rows: int
    sampled_rows: int
    marginals: list[Marginal]
    association: Association
    telling: Telling | None
    """None where the model has no exact conditionals."""
    cell_maps: list[CellMap]
    typical_score: float
    odd_rows: list[OddRow]
    sampled: list[list[str]]
    format: int = FORMAT

    def write(self, folder: Path | str) -> Path:
        """Into `overview.json` of a folder."""
        path = Path(folder) / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole({path: (json.dumps(asdict(self), allow_nan=False) + "\n").encode()})
        return path

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """The overview that `write` wrote."""
        path = Path(folder) / FILE
        if not path.exists():
            raise FileNotFoundError(f"{folder}: no {FILE} there; expected a folder that `tessella fit` made")
        said = read_json(path)
        if said.get("format") != FORMAT:
            raise BrokenFolderError(
                f"{path}: got format {said.get('format')!r:.80}; this version reads format {FORMAT}, "
                "run `tessella fit` again, or `gather` it anew from the flow and its table"
            )
        with interpreting(path):
            return cls(**said)
