"""Evaluate a model on held-out rows: every number a valid bound or an exact value, none dropped."""

import time
from dataclasses import dataclass

import torch

from tessella.contracts import Batch, Likelihood
from tessella.evaluation.likelihood import log_weights
from tessella.models import log_mean_exp


@dataclass(frozen=True)
class Evaluation:
    """Negative log-likelihood in nats per row (positive = worse): exact, or upper bounds on the true value."""

    rows: int
    elbo_nll: float
    iw_nll: float
    iw_samples: int
    """0 for an exact value, which then stands for both bounds."""
    stderr: float
    gap: float
    """iw_nll with a tenth of the samples, minus iw_nll: large means that more samples would still help."""
    entropy_floor: float | None
    seconds: float

    def __str__(self) -> str:
        error = f"+- {self.stderr:.4f} over {self.rows:,} rows"
        lines = [f"exact     {self.iw_nll:9.4f} nats  {error}"]
        if self.iw_samples:
            lines = [
                f"ELBO      {self.elbo_nll:9.4f} nats",
                f"IW-{self.iw_samples:<6} {self.iw_nll:9.4f} nats  {error}",
                f"gap       {self.gap:9.4f}  from {max(1, self.iw_samples // 10)} to {self.iw_samples} samples",
            ]
        if self.entropy_floor is not None:
            lines.append(
                f"floor     {self.entropy_floor:9.4f}  entropy floor: no valid model of these rows goes below it"
            )
        return "\n".join([*lines, f"time      {self.seconds:9.1f} s"])


@torch.no_grad()
def evaluate(model: Likelihood, batch: Batch, samples: int = 100, entropy_floor: float | None = None) -> Evaluation:
    """ELBO and importance-weighted bound of every row, or the exact value; a non-finite row is an error, never skipped.

    Args:
        model: any likelihood.
        batch: rows as the model takes them.
        samples: S of the bound; an exact model needs none.
        entropy_floor: the entropy of the rows' distribution, where it is known.
    """
    rows = len(batch[0])
    if rows == 0 or samples < 1:
        raise ValueError(f"batch, samples: got {rows} rows and {samples} samples; expected at least one of each")
    start = time.perf_counter()
    elbo, bound, coarse = [], [], []
    for weights in log_weights(model, batch, samples):  # (S, b), S = 1 where they are exact
        tenth = max(1, len(weights) // 10)
        elbo.append(weights.mean(0))
        bound.append(log_mean_exp(weights))
        groups = weights[: len(weights) // tenth * tenth].view(-1, tenth, weights.shape[1])
        coarse.append(torch.stack([log_mean_exp(group) for group in groups]).mean(0))
    per_row = torch.cat(bound)
    if not bool(per_row.isfinite().all()):
        bad = (~per_row.isfinite()).nonzero().flatten().tolist()
        raise ValueError(f"log-likelihood: {len(bad)} of {rows} rows are not finite (first: rows {bad[:5]})")
    return Evaluation(
        rows=rows,
        elbo_nll=-float(torch.cat(elbo).mean()),
        iw_nll=-float(per_row.mean()),
        iw_samples=0 if model.exact else samples,
        stderr=float(per_row.std() / len(per_row) ** 0.5) if len(per_row) > 1 else float("nan"),
        gap=float(per_row.mean() - torch.cat(coarse).mean()),
        entropy_floor=entropy_floor,
        seconds=time.perf_counter() - start,
    )
