"""Everything that a report shows of a fitted table, as plain data: `overview.json` beside the model."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self, TypedDict

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tessella.data.tables.columns import Column
from tessella.data.tables.encoding import Encoding
from tessella.estimators import frames
from tessella.estimators.anomalies import REASONS, contributions
from tessella.estimators.baselines import PLAN
from tessella.estimators.cell_maps import CellMap, cell_maps
from tessella.estimators.comparison import Likelihood, compare, shuffled
from tessella.estimators.fidelity import Association, Marginal, associations, marginals
from tessella.estimators.inputs import matched
from tessella.estimators.learning import Plan, limited_threads
from tessella.estimators.network import log_likelihood
from tessella.estimators.texts import text
from tessella.training.randomness import derived_seed, fork_rng, seed_noise
from tessella.version import __version__

if TYPE_CHECKING:
    from tessella.estimators.tabular_flow import TabularFlow

FILE, FORMAT = "overview.json", 2
SCORED_ROWS, EVALUATIONS = 2000, 2**15  # held-out rows at most, and draws of the noise for all of them together
ODD_SAMPLES = 16  # of the bound, where the columns of odd rows are changed one by one
REAL_ROWS, SAMPLED_ROWS = 10_000, 5000  # that are laid side by side
SHOWN_ROWS = 5  # oddest, and sampled


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
    likelihoods: list[Likelihood]
    seconds: float
    steps: int
    stopped: str
    curve: list[dict[str, float]]
    real_rows: int
    sampled_rows: int
    marginals: list[Marginal]
    association: Association
    cell_maps: list[CellMap]
    typical_score: float
    odd_rows: list[OddRow]
    sampled: list[list[str]]
    format: int = FORMAT

    def write(self, folder: Path | str) -> Path:
        """Into `overview.json` of a folder."""
        path = Path(folder) / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), allow_nan=False) + "\n", encoding="utf-8")
        return path

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """The overview that `write` wrote."""
        path = Path(folder) / FILE
        if not path.exists():
            raise FileNotFoundError(f"{folder}: no {FILE} there; expected a folder that `tessella fit` made")
        said = json.loads(path.read_text(encoding="utf-8"))
        if said.get("format") != FORMAT:
            raise ValueError(f"{path}: got format {said.get('format')!r}; this version reads format {FORMAT}")
        return cls(**said)


@limited_threads
def gather(flow: "TabularFlow", X: Any) -> Overview:
    """What a fitted flow made of the table it was fitted to.

    Args:
        flow: fitted to `X`; its `parts_` say which rows are for training, validation and test.
        X: that table.
    """
    check_is_fitted(flow, "parts_")
    encoding, rows = flow.encoding_, _encoded(flow, X)
    parts = {name: torch.as_tensor(indices).long() for name, indices in flow.parts_.items()}
    if sum(map(len, parts.values())) != len(rows):
        raise ValueError(f"X: got {len(rows)} rows; expected the {sum(map(len, parts.values()))} rows of fit")
    held_out = "test" if len(parts["test"]) else "validation"
    most = SCORED_ROWS if flow.exact_ else max(SHOWN_ROWS, min(SCORED_ROWS, EVALUATIONS // flow.samples_))
    scored = shuffled(parts[held_out], flow.seed_)[:most]
    scores = log_likelihood(flow.model_, rows[scored], flow.samples_, flow.seed_)
    train, every = shuffled(parts["train"], flow.seed_), shuffled(torch.arange(len(rows)), flow.seed_)
    real, sampled = rows[every[:REAL_ROWS]], _draws(flow)
    association = associations(encoding, real, sampled)
    return Overview(
        version=__version__,
        rows=len(rows),
        parts={name: len(part) for name, part in parts.items()},
        columns=[_summary(column, len(rows)) for column in flow.columns_],
        held_out=held_out,
        scored_rows=len(scored),
        model=_described(flow),
        exact=flow.exact_,
        samples=flow.samples_,
        learning=Learning(start=flow.start_, before=flow.initial_validation_, after=flow.best_validation_),
        likelihoods=compare(
            encoding, rows[train], rows[parts["validation"]], rows[scored], scores, flow.exact_, _plan(flow)
        ),
        seconds=float(flow.history_[-1]["seconds"]),
        steps=flow.n_iter_,
        stopped=flow.stopped_,
        curve=flow.history_,
        real_rows=len(real),
        sampled_rows=len(sampled),
        marginals=marginals(encoding, real, sampled),
        association=association,
        cell_maps=cell_maps(flow, association),
        typical_score=median(scores.tolist()),
        odd_rows=_oddest(flow, rows[scored], scores, scored),
        sampled=_texts(encoding, sampled[:SHOWN_ROWS]),
    )


def _encoded(flow: "TabularFlow", X: Any) -> Tensor:
    return flow.encoding_.encode(matched(frames.read(X), flow.layout_), flow.unseen)


def _plan(flow: "TabularFlow") -> Plan:
    """For the transformer at least as much time as the flow took."""
    seconds = max(float(flow.history_[-1]["seconds"]), flow.time_budget or 0.0)
    return replace(PLAN, seed=flow.seed_, device=flow.device, time_budget=seconds, progress=flow.progress)


def _described(flow: "TabularFlow") -> str:
    """What the model is: cells are named only where it has some."""
    return {
        "mixture": "a mixture of categoricals",
        "blocks": f"a block-autoregressive mixture of categoricals, {flow.groups_} blocks of columns",
        "coupling": "a flow through cells",
    }[flow.density_]


def _draws(flow: "TabularFlow") -> Tensor:
    """Sampled rows (B, G + R), inside the range of each column."""
    model, encoding = flow.model_, flow.encoding_
    with fork_rng(model.device), torch.no_grad():
        seed_noise(derived_seed(flow.seed_, "overview"), model.device)
        rows = model.sample(SAMPLED_ROWS).cpu()
    return encoding.encode(encoding.decode(rows))


def _summary(column: Column, rows: int) -> ColumnSummary:
    gone = column.frequencies[0 if column.number else -1] if column.missing else 0
    return ColumnSummary(
        name=column.name,
        kind=column.kind,
        categories=len(column.categories) - (None in column.categories),
        missing=gone / rows,
        measure=column.measure,
    )


def _oddest(flow: "TabularFlow", rows: Tensor, scores: Tensor, positions: Tensor) -> list[OddRow]:
    """The least likely rows; `positions` says where in the table they are."""
    oddest = scores.argsort()[:SHOWN_ROWS]
    again = log_likelihood(flow.model_, rows[oddest], ODD_SAMPLES, flow.seed_)
    shares = contributions(flow.model_, flow.encoding_, rows[oddest], again, ODD_SAMPLES, flow.seed_)
    values = _texts(flow.encoding_, rows[oddest])
    found = []
    for share, row_values, place in zip(shares, values, oddest.tolist(), strict=True):
        columns = [i for i in share.argsort(descending=True)[:REASONS].tolist() if share[i] > 0]
        reasons = [
            Reason(column=flow.columns_[i].name, value=row_values[i], contribution=float(share[i])) for i in columns
        ]
        found.append(OddRow(row=int(positions[place]), score=float(scores[place]), reasons=reasons, values=row_values))
    return found


def _texts(encoding: Encoding, rows: Tensor) -> list[list[str]]:
    """Rows as texts, a list for each row."""
    return [list(map(text, row)) for row in zip(*encoding.decode(rows), strict=True)]
