"""Audits of a fitted table: what can be checked about its likelihood without knowing the truth."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tessella.contracts import Batch, Likelihood
from tessella.data import Encoding
from tessella.estimators import frames
from tessella.estimators.baselines import MIXTURE, fit_baselines
from tessella.evaluation import (
    AuditResult,
    Evaluation,
    Grid,
    agreement_audit,
    evaluate,
    integral_audit,
    sandwich_audit,
    sum_to_one_audit,
)
from tessella.training.randomness import derived_seed, fork_rng, seed_noise

if TYPE_CHECKING:
    from tessella.estimators.tabular_flow import TabularFlow

REFERENCE_ROWS, VALIDATION_SHARE = 6000, 0.2  # drawn from the model, for the reference to learn from
MOST_EVALUATIONS = 400_000  # of the grid that integrates, importance samples counted
FEWEST, MOST = 512, 2048  # points of a real number; fewer are too coarse, more change nothing
TAIL = 12  # intervals beyond the outermost draws, each twice as long as the one before
OUTERMOST = 9.0  # logit of the outermost quantiles of the draws
MIDDLE = 0.998  # share of the draws whose range is cut evenly, too

Fit = Callable[[Encoding, Batch, Batch], Likelihood]


def measure(flow: "TabularFlow", X: Any, samples: int | None = None) -> Evaluation:
    """Mean -log p of the rows of a table, in nats, with its standard error: exact, or bounds with `samples`."""
    check_is_fitted(flow, "model_")
    frame = frames.read(X)
    frames.check_rows(frame, least=1)
    batch = flow.encoding_.encode(frames.matched(frame, flow.layout_), flow.unseen)
    with _noise(flow, "score"):
        return evaluate(flow.model_, tuple(part.to(flow.model_.device) for part in batch), _samples(flow, samples))


def categorical_mixture(encoding: Encoding, train: Batch, validation: Batch) -> Likelihood:
    """The reference for `agreement_audit`: exact, and quickly fitted to rows that the model drew."""
    return fit_baselines(encoding, train, validation, names=(MIXTURE,))[0]


def audit(
    flow: "TabularFlow", samples: int | None = None, rows: int = 2000, reference: Fit = categorical_mixture
) -> list[AuditResult]:
    """Those audits that apply to the table: sum to one or integral (small tables), sandwich, agreement.

    Args:
        flow: fitted.
        samples: of the bound; those that `score_samples` takes, without it.
        rows: that the model and the reference draw each, to see whether samples and probabilities belong together.
        reference: fits an exact model to training and validation rows.
    """
    check_is_fitted(flow, "model_")
    model, chosen = flow.model_, _samples(flow, samples)
    with _noise(flow, "audit"), torch.no_grad():
        drawn = tuple(part.cpu() for part in model.sample(REFERENCE_ROWS))
        held_out = round(VALIDATION_SHARE * REFERENCE_ROWS)
        train, validation = tuple(part[held_out:] for part in drawn), tuple(part[:held_out] for part in drawn)
        found = [
            _mass_audit(model, flow.encoding_, drawn, chosen),
            sandwich_audit(model, samples=chosen),
            agreement_audit(model, reference(flow.encoding_, train, validation), rows, chosen),
        ]
    return [one for one in found if one is not None]


def _mass_audit(model: Likelihood, encoding: Encoding, drawn: Batch, samples: int) -> AuditResult | None:
    if not encoding.numbers:
        return sum_to_one_audit(model, encoding.counts, samples)
    grid = grid_of(encoding, drawn, MOST_EVALUATIONS // (1 if model.exact else samples))
    return None if grid is None else integral_audit(model, grid, samples)


def grid_of(encoding: Encoding, drawn: Batch, most: int) -> Grid | None:
    """All rows of a small table: every code, every integer, real numbers by quadrature; None if too many.

    A number that is not there, as its indicator says (any code but 1), stands at 0, once. Where the others lie is taken
    from rows that the model drew, with long tails on both sides.
    """
    if prod(encoding.counts) > most:
        return None
    codes = Grid.of_codes(encoding.counts)
    axes = _axes(encoding, drawn, most // len(codes))
    if axes is None:
        return None
    absent, there = Grid.of_axis(torch.zeros(1)), _present(encoding, *codes.points)
    parts = []
    for pattern in there.unique(dim=0):
        numbers = (axis if present else absent for axis, present in zip(axes, pattern.tolist(), strict=True))
        parts.append(reduce(Grid.times, numbers, codes.where((there == pattern).all(1))))
    return reduce(Grid.plus, parts)


def _axes(encoding: Encoding, drawn: Batch, most: int) -> list[Grid] | None:
    """An axis for each number, the product of their points at most so many; None if that is too few."""
    codes, numbers = drawn
    values = [column[there] for column, there in zip(numbers.T, _present(encoding, codes).T, strict=True)]
    if not all(map(len, values)):
        return None
    ranges = [(float(v.min()), float(v.max())) for v, whole in zip(values, encoding.whole, strict=True) if whole]
    left = most / prod(3 * (high - low + 1) for low, high in ranges)
    reals = len(values) - len(ranges)
    points = int(left ** (1 / reals) + 1e-9) if reals else MOST
    if left < 1 or points < FEWEST:
        return None
    axes = zip(values, encoding.whole, strict=True)
    return [integer_axis(v) if whole else real_axis(v, min(points, MOST)) for v, whole in axes]


def integer_axis(values: Tensor) -> Grid:
    """Every integer between the smallest and the largest of the values, and as many again on both sides.

    >>> integer_axis(torch.tensor([2, 3])).points[0].flatten().tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    low, high = float(values.min()), float(values.max())
    span = high - low + 1
    return Grid.of_axis(torch.arange(low - span, high + span + 1, dtype=torch.float64))


def real_axis(values: Tensor, points: int) -> Grid:
    """Gauss's rule of two points in intervals where the values are, and in ever longer ones beyond them.

    Of the cuts one half are quantiles, so that a narrow peak is not missed; a quarter quantiles that are even in their
    logits, so that long tails have short intervals, too; and a quarter even in the middle of the values, so that a gap
    between two peaks is not one interval.

    Args:
        values: of the number, about as it is distributed.
        points: how many.

    >>> axis = real_axis(torch.randn(5000, generator=torch.Generator().manual_seed(0)), 400)
    >>> density = torch.distributions.Normal(0.0, 1.0).log_prob(axis.points[0][:, 0]).exp()
    >>> round(float((density * axis.volume).sum()), 3)
    1.0
    """
    values, cuts = values.double(), points // 8 - TAIL // 2
    logits, evenly = (torch.linspace(-end, end, cuts, dtype=torch.float64) for end in (OUTERMOST, MIDDLE))
    levels = torch.cat([torch.linspace(0, 1, 2 * cuts, dtype=torch.float64), logits.sigmoid()])
    low, high = torch.quantile(values, (1 + evenly[[0, -1]]) / 2)
    middle = low + (high - low) * (evenly / MIDDLE + 1) / 2
    inner = torch.cat([torch.quantile(values, levels), middle]).unique()
    steps = inner.diff()[[0, -1]] * (2.0 ** torch.arange(TAIL)[:, None])  # (TAIL, 2), both ends
    reach = steps.cumsum(0)
    edges = torch.cat([inner[0] - reach[:, 0].flip(0), inner, inner[-1] + reach[:, 1]])
    centre, half = (edges[1:] + edges[:-1]) / 2, edges.diff() / 2
    return Grid.of_axis(torch.cat([centre - half / 3**0.5, centre + half / 3**0.5]), torch.cat([half, half]))


def _present(encoding: Encoding, codes: Tensor) -> Tensor:
    """Whether each number is there, (B, R)."""
    always = torch.ones(len(codes), dtype=torch.bool)
    return torch.stack([always if i < 0 else codes[:, i] == 1 for i in encoding.indicators], 1)


@contextmanager
def _noise(flow: "TabularFlow", purpose: str) -> Iterator[None]:
    """The same noise every time."""
    device = flow.model_.device
    with fork_rng(device):
        seed_noise(derived_seed(flow.seed_, purpose), device)
        yield


def _samples(flow: "TabularFlow", samples: int | None) -> int:
    return flow.samples_ if samples is None else samples
