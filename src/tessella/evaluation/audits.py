"""Three ways to catch a likelihood that cannot be true."""

from dataclasses import dataclass
from itertools import product
from math import prod

import torch
from torch import Tensor

from tessella.evaluation.evaluate import Evaluation
from tessella.models import SemiDiscrete
from tessella.models.semidiscrete import log_mean_exp

MOST_ROWS_TO_ENUMERATE = 50_000


@dataclass(frozen=True)
class AuditResult:
    """What an audit measured, whether it passed, in words."""

    name: str
    passed: bool
    message: str

    def __str__(self) -> str:
        return f"{'pass' if self.passed else 'FAIL'}  {self.name}: {self.message}"


@torch.no_grad()
def sum_to_one_audit(model: SemiDiscrete, counts: tuple[int, ...], samples: int = 100) -> AuditResult | None:
    """sum_c exp(bound(c)) <= 1 over all possible rows, within Monte Carlo error; None when there are too many rows.

    exp of an importance-weighted bound is an unbiased estimate of P(c), so the sum is one of 1 (of less, where regions
    of space belong to no category), and its error follows from the spread of the weights.
    """
    if prod(counts) > MOST_ROWS_TO_ENUMERATE:
        return None
    rows = torch.tensor(list(product(*map(range, counts))), device=model.device)
    total, variance = 0.0, 0.0
    for weights in model.chunked_log_weights(rows, samples):
        probability = weights.double().exp()  # (S, b)
        total += float(probability.mean(0).sum())
        variance += float((probability.var(0) / samples).sum())
    error = variance**0.5
    return AuditResult(
        "sum to one",
        passed=total <= 1 + 4 * error + 1e-4,
        message=f"sum of P over all {len(rows):,} rows = {total:.4f} +- {error:.4f}; expected at most 1",
    )


def floor_audit(evaluation: Evaluation) -> AuditResult | None:
    """No value below a known floor by more than three standard errors; None when no floor is known."""
    if evaluation.floor is None:
        return None
    above = evaluation.iw_nll - evaluation.floor
    return AuditResult(
        "floor",
        passed=above >= -3 * evaluation.stderr,
        message=f"{evaluation.iw_nll:.4f} is {above:+.4f} from the floor {evaluation.floor:.4f} "
        f"(standard error {evaluation.stderr:.4f})",
    )


@torch.no_grad()
def sandwich_audit(model: SemiDiscrete, rows: int = 512, samples: int = 100) -> AuditResult:
    """On rows that the model made itself, x known: lower bound <= upper bound; prints the width between them.

    For such rows x is a draw from p(x | c). Averaging its weight with S - 1 weights of q gives an estimate whose
    expected logarithm is at least log P(c); S weights of q alone give one that is at most log P(c).
    """
    x, codes = _rows_of_the_model(model, rows)
    exact = model.density.log_prob(x) - model.dequantizer.log_prob(x, codes)  # (rows)
    reached = exact.isfinite()  # q may leave out a thin shell at the walls; bounds are on the rest
    x, codes, exact = x[reached], codes[reached], exact[reached]
    others = torch.cat(model.chunked_log_weights(codes, samples), 1)  # (S, rows)
    lower = log_mean_exp(others.double())
    upper = log_mean_exp(torch.cat([exact[None], others[1:]]).double())
    loose = exact.double()  # an upper bound too, and one that owes nothing to the weights under audit
    passed = all(_mean_at_least_zero(bound - lower) for bound in (upper, loose))
    width = float((upper - lower).mean())
    message = (
        f"log P of {len(x)} rows between {float(lower.mean()):.4f} and {float(upper.mean()):.4f}; width {width:.4f}"
    )
    return AuditResult("sandwich", passed, message)


def _mean_at_least_zero(values: Tensor) -> bool:
    """Within three standard errors."""
    return float(values.mean()) >= -3 * float(values.std() / len(values) ** 0.5)


def _rows_of_the_model(model: SemiDiscrete, rows: int) -> tuple[Tensor, Tensor]:
    """Draws x and their codes, without draws in space that belongs to no category (fixed geometries have some)."""
    x = model.density.sample((rows,))
    codes = model.dequantizer.quantize(x)
    cells = model.dequantizer.cells
    again, _ = cells.place(cells.displace(x, codes)[0], codes)
    inside = ((again - x).abs() < 1e-2 * (1 + x.abs())).all(-1).all(-1)
    return x[inside], codes[inside]
