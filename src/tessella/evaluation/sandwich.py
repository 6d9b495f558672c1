"""How far a bound may be from the truth, on rows for which both sides are known."""

from math import log

import torch
from torch import Tensor

from tessella.contracts import Likelihood
from tessella.evaluation.audits import MOST_MASS_LOST, AuditResult, slack_allowed
from tessella.models import ImportanceBound, log_mean_exp

UNEXPLAINED = 1000.0  # times the estimate of P: a weight that the noise would hardly ever have found


@torch.no_grad()
def sandwich_audit(model: Likelihood, rows: int = 512, samples: int = 100) -> AuditResult:
    """lower <= log P(c) <= upper on rows that the model made itself, x known; and upper - lower is small.

    For such rows x is a draw from p(x | c). Averaging its weight p(x) / q(x | c) with S - 1 weights of q gives an
    estimate whose expected logarithm is at least log P(c); S weights of q alone give one that is at most log P(c). The
    sign alone proves little: the audit fails, too, when the two are more than 0.1 nats and 1% of the value apart.

    The noise does not explain a draw whose weight is more than 1,000 times the estimate from S weights of q: there p
    has mass that q misses. Draws where q is 0 have an infinite weight. They are left out of the width, counted among
    the unexplained, and more than 3% of them fail.
    """
    if model.exact:
        return AuditResult("sandwich", True, "exact: nothing between the bounds", {"width": 0.0})
    if not isinstance(model, ImportanceBound):
        raise TypeError(f"model: got a {type(model).__name__} that is not exact; expected an ImportanceBound")
    own, others = _weights(model, rows, samples)
    reached, lower = own.isfinite(), log_mean_exp(others)
    unexplained = float((~reached | (own - lower > log(UNEXPLAINED))).double().mean())
    missed = float((~reached).double().mean())
    own, others, lower = own[reached], others[:, reached], lower[reached]
    upper = log_mean_exp(torch.cat([own[None], others[1:]]))
    # A weight of p's own draw is an upper bound by itself, one that owes nothing to the weights under audit.
    ordered = len(own) > 1 and all(_mean_at_least_zero(bound - lower) for bound in (upper, own))
    value = {
        "lower": float(lower.mean()),
        "upper": float(upper.mean()),
        "width": float((upper - lower).mean()),
        "unexplained": unexplained,
        "unreached": missed,
    }
    return _judged(value, ordered, rows)


def _judged(value: dict[str, float], ordered: bool, rows: int) -> AuditResult:
    allowed = slack_allowed(value["lower"])
    wrong = []
    if not ordered:
        wrong.append("the lower bound is above the upper one")
    elif value["width"] > allowed:
        wrong.append(f"wide: expected at most {allowed:.4f}, so this says little about the likelihood")
    if value["unreached"] > MOST_MASS_LOST:
        wrong.append("the noise does not reach where the model draws")
    message = (
        f"log P of {rows} rows between {value['lower']:.4f} and {value['upper']:.4f}, width {value['width']:.4f}; "
        f"the noise does not explain {value['unexplained']:.1%} of the model's own draws "
        f"and cannot reach {value['unreached']:.1%}"
    )
    finite = {name: number for name, number in value.items() if number == number}
    return AuditResult("sandwich", not wrong, "; ".join([message, *wrong]), finite)


def _weights(model: ImportanceBound, rows: int, samples: int) -> tuple[Tensor, Tensor]:
    """log weights of the draws behind the model's own rows (rows), and of draws of q for them (S, rows)."""
    batch, own = model.sample_with_weights(rows)
    others = torch.cat(model.chunked_log_weights(*batch, samples=samples), 1).double()
    return own, others


def _mean_at_least_zero(values: Tensor) -> bool:
    """Within three standard errors."""
    return float(values.mean()) >= -3 * float(values.std() / len(values) ** 0.5)
