"""Quantized 2-D data (Figures 4 and 5 of the paper): fit, and compare with the known law."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tessella.data import Quantized, quantized_toy
from tessella.models import SemiDiscrete
from tessella.runs.run import QUANTIZED, TrainedRun


@dataclass(frozen=True)
class QuantizedResult:
    """KL(target || model), nats, from the importance-weighted bound of every cell: an upper bound in expectation."""

    kl: float
    kl_independent: float
    """Of the product of the target's marginals, exactly."""
    iw_samples: int
    mass: float
    """Sum of the model's probabilities over all cells, estimated; at most 1 up to Monte Carlo error."""


@torch.no_grad()
def compare_with_target(run: TrainedRun, samples: int = 100) -> tuple[QuantizedResult, Tensor, Quantized]:
    """The result, the model's probabilities (bins, bins), and the target."""
    target = quantized_toy(run.table.name.removeprefix(QUANTIZED))
    log_model = cell_log_probabilities(run.model, len(target.probabilities), samples)
    p = target.probabilities.double()
    independent = torch.outer(p.sum(1), p.sum(0))
    result = QuantizedResult(
        kl=_kl(p, log_model),
        kl_independent=_kl(p, independent.log()),
        iw_samples=samples,
        mass=float(log_model.exp().sum()),
    )
    return result, log_model.exp(), target


def cell_log_probabilities(model: SemiDiscrete, bins: int, samples: int) -> Tensor:
    """log P of every pair of codes, (bins, bins), double."""
    codes = torch.cartesian_prod(torch.arange(bins), torch.arange(bins)).to(model.device)
    return model.log_prob(codes, samples).double().cpu().view(bins, bins)


def _kl(p: Tensor, log_q: Tensor) -> float:
    seen = p > 0
    return float((p[seen] * (p[seen].log() - log_q[seen])).sum())
