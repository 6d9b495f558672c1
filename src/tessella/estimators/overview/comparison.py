"""Who predicts rows that nobody saw best: the model or what one would use instead."""

from math import sqrt
from typing import TypedDict

import torch
from torch import Tensor

from tessella.contracts import Batch
from tessella.data import Encoding
from tessella.estimators.baselines import PLAN, fit_baselines
from tessella.estimators.learning import Plan

MODEL = "TabularFlow"


class Compared(TypedDict):
    """Mean -log p of the held-out rows, in nats, and its standard error; differences are paired, row by row."""

    name: str
    nll: float
    error: float
    exact: bool
    """Else an upper bound of it."""
    learned_from: int
    lead: float
    """By how many nats per row the flow is better than this model."""
    lead_error: float
    gain: float
    """By how many nats per row this model is better than independent columns."""
    gain_error: float


def compare(
    encoding: Encoding,
    train: Batch,
    validation: Batch,
    held_out: Batch,
    scores: Tensor,
    exact: bool,
    rows: int,
    plan: Plan = PLAN,
) -> list[Compared]:
    """The flow, then its baselines, the last of them the independent columns.

    Args:
        encoding: of the rows.
        train: rows the baselines learn from, in random order.
        validation: rows that choose their settings.
        held_out: rows to compare on.
        scores: the flow's log-likelihood of them, (B).
        exact: whether they are likelihoods rather than lower bounds.
        rows: that the flow learned from, of which the baselines may have some.
        plan: how the causal transformer is trained: as long as the flow was.
    """
    baselines = fit_baselines(encoding, train, validation, plan)
    scored = {MODEL: scores} | {baseline.name: baseline.log_prob(*held_out) for baseline in baselines}
    learned_from = {MODEL: rows} | {baseline.name: baseline.rows for baseline in baselines}
    independent = scored[baselines[-1].name]
    found = []
    for name, values in scored.items():
        differences = (-values, scores - values, values - independent)
        (nll, error), (lead, lead_error), (gain, gain_error) = map(_mean, differences)
        found.append(
            Compared(
                name=name,
                nll=nll,
                error=error,
                exact=exact or name != MODEL,
                learned_from=learned_from[name],
                lead=lead,
                lead_error=lead_error,
                gain=gain,
                gain_error=gain_error,
            )
        )
    return found


def _mean(values: Tensor) -> tuple[float, float]:
    """Mean and its standard error; 0 for a single value."""
    return float(values.mean()), float(values.std(correction=min(1, len(values) - 1))) / sqrt(len(values))


def shuffled(indices: Tensor, seed: int) -> Tensor:
    """The same indices in random order."""
    return indices[torch.randperm(len(indices), generator=torch.Generator().manual_seed(seed))]
