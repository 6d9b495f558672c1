"""Audits of a fitted table: what can be checked about its likelihood without knowing the truth."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tessella.data.tables.encoding import Encoding
from tessella.estimators import frames
from tessella.estimators.baselines import fit_baselines
from tessella.estimators.inputs import check_rows, matched
from tessella.evaluation import (
    AuditResult,
    Evaluation,
    Grid,
    Likelihood,
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

Fit = Callable[[Encoding, Tensor, Tensor], Likelihood]


def measure(flow: "TabularFlow", X: Any, samples: int | None = None) -> Evaluation:
    """Mean -log p of the rows of a table, in nats, with its standard error: exact, or bounds with `samples`."""
    check_is_fitted(flow, "model_")
    frame = frames.read(X)
    check_rows(frame, least=1)
    rows = flow.encoding_.encode(matched(frame, flow.layout_), flow.unseen)
    with _noise(flow, "score"):
        return evaluate(flow.model_, rows.to(flow.model_.device), _samples(flow, samples))


def latent_classes(encoding: Encoding, train: Tensor, validation: Tensor) -> Likelihood:
    """The reference for `agreement_audit`: exact, and quickly fitted to rows that the model drew."""
    return fit_baselines(encoding, train, validation, names=("latent classes",))[0]


def audit(
    flow: "TabularFlow", samples: int | None = None, rows: int = 2000, reference: Fit = latent_classes
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
        drawn = model.sample(REFERENCE_ROWS).cpu()
        held_out = round(VALIDATION_SHARE * len(drawn))
        found = [
            _mass_audit(model, flow.encoding_, drawn, chosen),
            sandwich_audit(model, samples=chosen),
            agreement_audit(model, reference(flow.encoding_, drawn[held_out:], drawn[:held_out]), rows, chosen),
        ]
    return [one for one in found if one is not None]


def _mass_audit(model: Likelihood, encoding: Encoding, drawn: Tensor, samples: int) -> AuditResult | None:
    if not encoding.numbers:
        return sum_to_one_audit(model, encoding.counts, samples)
    grid = grid_of(encoding, drawn, MOST_EVALUATIONS // (1 if model.exact else samples))
    return None if grid is None else integral_audit(model, grid, samples)


def grid_of(encoding: Encoding, drawn: Tensor, most: int) -> Grid | None:
    """All rows (B, G + R) of a small table: every code, every integer, real numbers by quadrature; None if too many.

    A number that is not there, as its indicator says (any code but 1), stands at 0, once. Where the others lie is taken
    from rows that the model drew, with long tails on both sides.
    """
    if prod(encoding.counts) > most:
        return None
    codes = Grid.of_codes(encoding.counts)
    axes = _axes(encoding, drawn, most // len(codes))
    if axes is None:
        return None
    absent, parts = Grid.of_axis(torch.zeros(1)), []
    for pattern in _present(encoding, codes.points).unique(dim=0):
        chosen = (_present(encoding, codes.points) == pattern).all(1)
        part = Grid(codes.points[chosen], codes.volume[chosen])
        for axis, present in zip(axes, pattern.tolist(), strict=True):
            part = part.times(axis if present else absent)
        parts.append(part)
    return Grid(torch.cat([part.points for part in parts]), torch.cat([part.volume for part in parts]))


def _axes(encoding: Encoding, drawn: Tensor, most: int) -> list[Grid] | None:
    """An axis for each number, the product of their points at most so many; None if that is too few."""
    first = len(encoding.counts)
    present = _present(encoding, drawn[:, :first])
    values = [drawn[present[:, i], first + i] for i in range(len(encoding.numbers))]
    if not all(map(len, values)):
        return None
    ranges = [(float(v.min()), float(v.max())) for v, unit in zip(values, encoding.unit, strict=True) if unit]
    left = most / prod(3 * (high - low + 1) for low, high in ranges)
    reals = len(values) - len(ranges)
    points = int(left ** (1 / reals) + 1e-9) if reals else MOST
    if left < 1 or points < FEWEST:
        return None
    axes = zip(values, encoding.unit, strict=True)
    return [integer_axis(v) if unit else real_axis(v, min(points, MOST)) for v, unit in axes]


def integer_axis(values: Tensor) -> Grid:
    """Every integer between the smallest and the largest of the values, and as many again on both sides.

    >>> integer_axis(torch.tensor([2, 3])).points.flatten().tolist()
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
    >>> density = torch.distributions.Normal(0.0, 1.0).log_prob(axis.points[:, 0]).exp()
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
