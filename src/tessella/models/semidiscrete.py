"""Rows of categories under a density of points."""

from math import log

import torch
from torch import Tensor, nn

from tessella.densities import Density
from tessella.dequantizers import Dequantizer
from tessella.progress import counted

SAMPLES = 100  # of the bound, where a call does not say
POINTS_AT_ONCE = {"cpu": 2**10}  # what a layer makes of them stays in the cache: twice as fast as 2**15
POINTS_AT_ONCE_ELSEWHERE = 2**15


class SemiDiscrete(nn.Module):
    """log P(c) >= E_q log 1/S sum_s p(x_s) / q(x_s | c): any density of points as a model of rows of categories.

    Args:
        dequantizer: q(x | codes).
        density: p(x), over (N, D) points.
        train_samples: S of the training objective; 1 is the ELBO, more is tighter and dearer.
        validation_samples: S of the per-row values that training validates with.
    """

    exact = False

    def __init__(self, dequantizer: Dequantizer, density: Density, train_samples: int = 1, validation_samples: int = 8):
        super().__init__()
        self.dequantizer, self.density = dequantizer, density
        self.train_samples, self.validation_samples = train_samples, validation_samples

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def _points_at_once(self) -> int:
        return POINTS_AT_ONCE.get(self.device.type, POINTS_AT_ONCE_ELSEWHERE)

    def elbo(self, codes: Tensor) -> Tensor:
        """log p(x) - log q(x | codes) for one draw x per row: an unbiased estimate of a lower bound. (B, N) -> (B)."""
        x, log_q = self.dequantizer.dequantize(codes)
        return self.density.log_prob(x) - log_q

    def log_weights(self, codes: Tensor, samples: int) -> Tensor:
        """`samples` independent values of `elbo` per row, (S, B)."""
        return self.elbo(codes.repeat(samples, 1)).view(samples, len(codes))

    def log_prob(self, codes: Tensor, samples: int | None = None) -> Tensor:
        """The importance-weighted bound on log P(codes), (B); the memory it takes does not grow with B or S."""
        chunks = self.chunked_log_weights(codes, SAMPLES if samples is None else samples)
        return torch.cat([log_mean_exp(weights) for weights in chunks])

    def chunked_log_weights(self, codes: Tensor, samples: int) -> list[Tensor]:
        """`log_weights` of a few rows at a time, a few samples at a time: tensors (S, b)."""
        points = self._points_at_once
        rows = max(1, points // samples)
        together = min(samples, points)
        counts = [min(together, samples - start) for start in range(0, samples, together)]
        parts = counted(codes.split(rows))
        return [torch.cat([self.log_weights(part, count) for count in counts]) for part in parts]

    @torch.no_grad()
    def sample(self, rows: int) -> Tensor:
        """New rows of codes, (rows, N)."""
        places = torch.arange(rows).split(self._points_at_once)
        return torch.cat([self.dequantizer.quantize(self.density.sample((len(part),))) for part in counted(places)])

    def loss(self, batch: Tensor) -> Tensor:
        """Mean negative bound of a batch, the training objective."""
        return -log_mean_exp(self.log_weights(batch, self.train_samples)).mean()

    def nll(self, batch: Tensor) -> Tensor:
        """Negative bound of each row, for validation."""
        return -self.log_prob(batch, self.validation_samples)

    @torch.no_grad()
    def initialize(self, batch: Tensor) -> None:
        """Data-dependent initialisation of the density."""
        self.density.initialize(self.dequantizer.dequantize(batch)[0])


def log_mean_exp(log_weights: Tensor) -> Tensor:
    """log 1/S sum_s exp(w_s) over the first dimension."""
    return torch.logsumexp(log_weights, 0) - log(len(log_weights))
