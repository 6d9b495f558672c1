"""What becomes of a bound when the divergence of a continuous flow is estimated: a number that no model has earned."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from tessella.bijections import ContinuousFlow
from tessella.contracts import Batch
from tessella.models import ImportanceBound, log_mean_exp

SETS = 200
COUNTS = (1, 4, 10, 40, 100, 400, 1000)


@contextmanager
def estimated_traces(model: nn.Module) -> Iterator[None]:
    """Inside, continuous flows estimate their divergence in evaluation, too."""
    flows = [part for part in model.modules() if isinstance(part, ContinuousFlow)]
    for flow in flows:
        flow.estimated = True
    try:
        yield
    finally:
        for flow in flows:
            flow.estimated = False


@torch.no_grad()
def compare_traces(model: ImportanceBound, batch: Batch, samples: int, sets: int = SETS) -> dict[str, Any]:
    """-log 1/S sum_s w_s with the exact divergence and with Hutchinson's estimate, for S up to `samples`.

    With e ~ N(0, s^2) added to log w, E log w stays as it was, but log E w rises by s^2 / 2: the more samples, the more
    of the largest e is counted as likelihood. For one set the weights are w exp(e), and their mean is no estimate of P.

    Returns:
        [S, exact, estimated] on the first so many sets; and the standard deviation of log w over samples, both ways.
    """
    few = tuple(part[:sets] for part in batch)
    exact = torch.cat(model.chunked_log_weights(*few, samples=samples), 1).double()
    with estimated_traces(model):
        noisy = torch.cat(model.chunked_log_weights(*few, samples=samples), 1).double()
    curve = []
    for count in (count for count in COUNTS if count <= samples):
        groups = (part[: samples // count * count].view(-1, count, part.shape[1]) for part in (exact, noisy))
        curve.append([count, *(-float(log_mean_exp(part.transpose(0, 1)).mean()) for part in groups)])
    return {
        "sets": len(few[0]),
        "curve": curve,
        "deviation": {"exact": float(exact.std(0).mean()), "estimated": float(noisy.std(0).mean())},
    }
