"""Evaluate a model on held-out rows: every number a valid bound, none dropped."""

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from tessella.models import SemiDiscrete
from tessella.models.semidiscrete import log_mean_exp


@dataclass(frozen=True)
class Evaluation:
    """Negative log-likelihood bounds in nats per row; all of them upper bounds on the true value (positive = worse)."""

    rows: int
    elbo_nll: float
    iw_nll: float
    iw_samples: int
    stderr: float
    gap: float
    """iw_nll with a tenth of the samples, minus iw_nll: large means that more samples would still help."""
    floor: float | None
    seconds: float

    def __str__(self) -> str:
        lines = [
            f"ELBO      {self.elbo_nll:9.4f} nats",
            f"IW-{self.iw_samples:<6} {self.iw_nll:9.4f} nats  +- {self.stderr:.4f} over {self.rows:,} rows",
            f"gap       {self.gap:9.4f}  from {max(1, self.iw_samples // 10)} to {self.iw_samples} samples",
        ]
        if self.floor is not None:
            lines.append(f"floor     {self.floor:9.4f}  no valid model of these rows goes below it")
        return "\n".join([*lines, f"time      {self.seconds:9.1f} s"])


@torch.no_grad()
def evaluate(model: SemiDiscrete, codes: Tensor, samples: int = 100, floor: float | None = None) -> Evaluation:
    """ELBO and importance-weighted bound of every row; a non-finite row is an error, never skipped."""
    if len(codes) == 0 or samples < 1:
        raise ValueError(f"codes, samples: got {len(codes)} rows and {samples} samples; expected at least one of each")
    start = time.perf_counter()
    tenth = max(1, samples // 10)
    elbo, bound, coarse = [], [], []
    for weights in model.chunked_log_weights(codes, samples):  # (S, b), double precision for the sums
        weights = weights.double()
        elbo.append(weights.mean(0))
        bound.append(log_mean_exp(weights))
        groups = weights[: samples // tenth * tenth].view(-1, tenth, weights.shape[1])
        coarse.append(torch.stack([log_mean_exp(group) for group in groups]).mean(0))
    per_row = torch.cat(bound)
    if not bool(per_row.isfinite().all()):
        bad = (~per_row.isfinite()).nonzero().flatten().tolist()
        raise ValueError(f"log-likelihood: {len(bad)} of {len(codes)} rows are not finite (first: rows {bad[:5]})")
    return Evaluation(
        rows=len(codes),
        elbo_nll=-float(torch.cat(elbo).mean()),
        iw_nll=-float(per_row.mean()),
        iw_samples=samples,
        stderr=float(per_row.std() / len(per_row) ** 0.5) if len(per_row) > 1 else float("nan"),
        gap=float(per_row.mean() - torch.cat(coarse).mean()),
        floor=floor,
        seconds=time.perf_counter() - start,
    )
