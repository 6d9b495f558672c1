"""From a fitted flow and its table to what a report shows of them."""

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tessella.data import Column, Encoding
from tessella.estimators import frames
from tessella.estimators.anomalies import REASONS, contributions, oddness
from tessella.estimators.baselines import PLAN
from tessella.estimators.learning import Plan, limited_threads
from tessella.estimators.network import log_likelihood
from tessella.estimators.overview.cell_maps import cell_maps
from tessella.estimators.overview.comparison import compare, shuffled
from tessella.estimators.overview.document import ColumnSummary, Learning, OddRow, Overview, Reason
from tessella.estimators.overview.fidelity import associations, marginals
from tessella.estimators.overview.telling import telling
from tessella.estimators.streaming import Survey
from tessella.progress import Progress
from tessella.training.randomness import derived_seed, fork_rng, seed_noise
from tessella.version import __version__

if TYPE_CHECKING:
    from tessella.estimators.tabular_flow import TabularFlow

SCORED_ROWS, EVALUATIONS = 2000, 2**15  # held-out rows at most, and draws of the noise for all of them together
ODD_SAMPLES = 16  # of the bound, where the columns of odd rows are changed one by one
REAL_ROWS, SAMPLED_ROWS = 10_000, 5000  # that are laid side by side
CELLS = 2**20  # that are sampled at most
ASKED = 3000  # columns that the model is asked about, for each other, times columns of the table: 30 of 100, 6 of 500
EXPLAINED = 200  # columns, up to which odd rows are explained: the time of that grows with their square
PARTS = 6  # of the work
SHOWN_ROWS = 5  # oddest, and sampled


@limited_threads
def gather(flow: "TabularFlow", X: Any) -> Overview:
    """What a fitted flow made of the table it was fitted to.

    Args:
        flow: fitted to `X`; its `parts_` say which rows are for training, validation and test.
        X: that table, or the survey of it, where it was streamed: then its kept rows stand for all.
    """
    check_is_fitted(flow, "parts_")
    encoding, (rows, parts, places) = flow.encoding_, _laid_out(flow, X)  # rows (B, G + R)
    sizes, total = {name: len(part) for name, part in parts.items()}, len(X)
    if isinstance(X, Survey):
        sizes["train"] = sum(X.sizes)
    held_out = "test" if len(parts["test"]) else "validation"
    most = SCORED_ROWS if flow.exact_ else max(SHOWN_ROWS, min(SCORED_ROWS, EVALUATIONS // flow.samples_))
    scored = shuffled(parts[held_out], flow.seed_)[:most]
    chosen = shuffled(parts["train"], flow.seed_), parts["validation"], scored
    train, validation, unseen = (encoding.split(rows[indices]) for indices in chosen)
    with Progress("report", PARTS, flow.progress, keep=False) as done:
        scores = log_likelihood(flow.model_, unseen, flow.samples_, flow.seed_)
        done.move(1, "sampling")
        real, sampled = rows[shuffled(torch.arange(len(rows)), flow.seed_)[:REAL_ROWS]], _draws(flow)
        done.move(2, "columns and pairs of them")
        association, apart = associations(encoding, real, sampled), marginals(encoding, real, sampled)
        done.move(3, "what columns tell about each other")
        told = telling(flow.model_, encoding, sampled, association["names"][: max(2, ASKED // len(encoding.columns))])
        done.move(4, "the oddest rows")
        oddest = _oddest(flow, rows[scored], scores, places[scored])
        done.move(5, "baselines")
        likelihoods = compare(encoding, train, validation, unseen, scores, flow.exact_, sizes["train"], _plan(flow))
    return Overview(
        version=__version__,
        rows=total,
        parts=sizes,
        columns=[_summary(column, total) for column in flow.columns_],
        held_out=held_out,
        scored_rows=len(scored),
        model=_described(flow),
        exact=flow.exact_,
        samples=flow.samples_,
        learning=Learning(start=flow.start_, before=flow.initial_validation_, after=flow.best_validation_),
        likelihoods=likelihoods,
        seconds=float(flow.history_[-1]["seconds"]),
        steps=flow.n_iter_,
        stopped=flow.stopped_,
        curve=flow.history_,
        real_rows=len(real),
        sampled_rows=len(sampled),
        marginals=apart,
        association=association,
        telling=told,
        cell_maps=cell_maps(flow, association),
        typical_score=median(scores.tolist()),
        odd_rows=oddest,
        sampled=_texts(encoding, sampled[:SHOWN_ROWS]),
    )


def _laid_out(flow: "TabularFlow", X: Any) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """Rows (B, G + R), which of them are in which part, and where in the table each is."""
    encoding, found = flow.encoding_, {name: torch.as_tensor(places).long() for name, places in flow.parts_.items()}
    known = sum(map(len, found.values()))
    if isinstance(X, Survey):
        ends = torch.arange(known).split([len(part) for part in found.values()])
        rows = torch.cat([encoding.join(*X.batch(encoding, part)) for part in found])
        return rows, dict(zip(found, ends, strict=True)), torch.cat(list(found.values()))
    rows = encoding.join(*encoding.encode(frames.matched(frames.read(X), flow.layout_), flow.unseen))
    if known != len(rows):
        raise ValueError(f"X: got {len(rows)} rows; expected the {known} rows of fit")
    return rows, found, torch.arange(len(rows))


def _plan(flow: "TabularFlow") -> Plan:
    """For the transformer as much time as the flow took, or was given, if nobody became impatient."""
    seconds = float(flow.history_[-1]["seconds"])
    if flow.stopped_ != "interrupted":
        seconds = max(seconds, flow.time_budget or 0.0)
    return replace(PLAN, seed=flow.seed_, device=flow.device, time_budget=seconds, progress=flow.progress)


def _described(flow: "TabularFlow") -> str:
    """What the model is: cells are named only where it has some."""
    return {
        "autoregressive": "an exact density of one column after another, in any order",
        "mixture": "a mixture of categoricals",
        "blocks": f"a block-autoregressive mixture of categoricals, {flow.groups_} blocks of columns",
        "coupling": "a flow through cells",
    }[flow.density_]


def _draws(flow: "TabularFlow") -> Tensor:
    """Sampled rows (B, G + R), inside the range of each column."""
    model, encoding = flow.model_, flow.encoding_
    with fork_rng(model.device), torch.no_grad():
        seed_noise(derived_seed(flow.seed_, "overview"), model.device)
        drawn = model.sample(min(SAMPLED_ROWS, CELLS // len(encoding.columns)))
    return encoding.join(*encoding.encode(encoding.decode(*drawn)))


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
    """The rows that surprise most; `positions` says where in the table they are."""
    oddest = oddness(flow.model_, flow.encoding_, rows, scores).argsort(descending=True, stable=True)[:SHOWN_ROWS]
    again = log_likelihood(flow.model_, flow.encoding_.split(rows[oddest]), ODD_SAMPLES, flow.seed_)
    shares = torch.zeros(len(oddest), len(flow.columns_))
    if len(flow.columns_) <= EXPLAINED:
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
    return [list(map(frames.text, row)) for row in zip(*encoding.decode(*encoding.split(rows)), strict=True)]
