"""Samples and probabilities belong together, in any dimension."""

from math import exp

import torch
from torch import Tensor

from tessella.contracts import Likelihood
from tessella.evaluation.audits import AuditResult, slack_allowed
from tessella.evaluation.likelihood import as_batch_of

LARGEST_ERROR = 0.1  # nats; beyond, the answer says nothing
LEAST_IN_COMMON = 100.0  # rows that might be of either; with fewer, the error itself hangs on rows that were not seen
HALVINGS = 100
ROUNDING = 1e-4  # nats


@torch.no_grad()
def agreement_audit(
    model: Likelihood, reference: Likelihood, rows: int = 2000, samples: int | None = None
) -> AuditResult:
    """log int P = 0, from rows of the model and of a reference g: by bridge sampling, and by both plain ratios.

    g is normalised, exact, in the same units as P, and near the model: fitted to rows that the model drew. If the
    model's rows have the probabilities P, and only then, E_model[g / P] = 1 and E_g[P / g] = 1. Where one of P and g
    is far below the other these means hang on a few rows, so the verdict is that of the bridge (Bennett, 1976): the z
    with

        sum_{x ~ model} s(z - r(x)) = sum_{x ~ g} s(r(x) - z),    r = log P / g,    s(t) = 1 / (1 + exp(-t)),

    whose terms lie between 0 and 1. z = log int P if the rows are those of P. If they come from another distribution g
    resembles that one, P is small where both draw, and z is below 0. So an exact model fails when z is not 0, within
    four standard errors. A bound fails when z > 0, and when z is further below 0 than the slack of a good bound: it is
    loose, or the rows are not its own.

    Args:
        model: to be audited.
        reference: g.
        rows: of each, drawn for this; none of those that g was fitted to.
        samples: of the bound.
    """
    own, drawn = model.sample(rows), reference.sample(rows)
    own_p, drawn_p = (model.log_prob(*as_batch_of(model, x), samples=samples).double().cpu() for x in (own, drawn))
    own_g, drawn_g = (reference.log_prob(*as_batch_of(reference, x)).double().cpu() for x in (own, drawn))
    if not bool(own_p.isfinite().all()):
        bad = int((~own_p.isfinite()).sum())
        return AuditResult("agreement", False, f"P is 0 or not a number for {bad} of {rows} rows of the model's own")
    log_mass, error, overlap = bridge(own_p - own_g, drawn_p - drawn_g)
    value = {"log_mass": log_mass, "error": error, "overlap": overlap}
    parts = [
        f"log of the total mass = {log_mass:+.4f} +- {error:.4f} from {rows:,} rows each way, overlap {overlap:.0%}"
    ]
    for name, (said, ratio) in {
        "g_over_p": ("E_model[g / P]", own_g - own_p),
        "p_over_g": ("E_g[P / g]", drawn_p - drawn_g),
    }.items():
        mean, spread, worth = _mean_of(ratio)
        parts.append(f"{said} = {mean:.4g} +- {spread:.2g} (worth {worth:,.0f} rows)")
        value |= {name: mean, f"{name}_error": spread, f"{name}_effective": worth}
    if error > LARGEST_ERROR or overlap * rows < LEAST_IN_COMMON:
        passed, verdict = None, "the reference is too far from the model to say more"
    else:
        passed, verdict = _verdict(log_mass, error, model.exact, slack_allowed(float(own_p.mean())))
    finite = {name: number for name, number in value.items() if abs(number) < float("inf")}
    return AuditResult("agreement", passed, "; ".join([*parts, verdict]), finite)


def _verdict(log_mass: float, error: float, exact: bool, slack: float) -> tuple[bool, str]:
    if log_mass > 4 * error + ROUNDING:
        return False, "expected 0: P is too large for the rows that the model draws"
    least = -4 * error - (ROUNDING if exact else slack)
    if log_mass < least:
        why = "" if exact else "the bound is loose, or "
        return False, f"expected {'0' if exact else f'at least {-slack:.3f}'}: {why}the rows are not drawn from P"
    return True, "expected 0" if exact else f"slack up to {slack:.3f} is a good bound's"


def bridge(own: Tensor, drawn: Tensor) -> tuple[float, float, float]:
    """z of `agreement_audit`, its standard error and the overlap, from the values of r for rows of the model and of g.

    The overlap is twice the mean of the terms, 1 where P and g are the same and 0 where no row might be of either.

    >>> noise = torch.Generator().manual_seed(0)
    >>> x, y = torch.randn(1000, generator=noise), 1 + torch.randn(1000, generator=noise)
    >>> z, error, _ = bridge(0.5 - x + 0.7, 0.5 - y + 0.7)  # r of exp(0.7) N(0, 1) against N(1, 1)
    >>> abs(z - 0.7) < 4 * error < 0.25
    True
    """
    every = torch.cat([own, drawn])
    every = every[every.isfinite()]
    low, high = float(every.min()) - 50, float(every.max()) + 50
    for _ in range(HALVINGS):
        z = (low + high) / 2
        if float((z - own).sigmoid().sum()) < float((drawn - z).sigmoid().sum()):
            low = z
        else:
            high = z
    terms = ((z - own).sigmoid(), (drawn - z).sigmoid())
    error = sum(float(term.var() / term.mean().square()) / len(term) for term in terms) ** 0.5
    return z, error, float(torch.cat(terms).mean()) * 2


def _mean_of(log_ratio: Tensor) -> tuple[float, float, float]:
    """Mean of exp, its standard error, and the effective sample size (sum w)^2 / sum w^2."""
    top = float(log_ratio.max())
    weight = (log_ratio - top).exp()
    worth = float(weight.sum() ** 2 / weight.square().sum())
    scale = exp(top) if top < 700 else float("inf")
    return scale * float(weight.mean()), scale * float(weight.std()) / len(weight) ** 0.5, worth
