"""Rows of categories and numbers under a density of points."""

from math import log

import torch
from torch import Tensor, nn

from tessella.contracts import Batch
from tessella.densities import Density
from tessella.dequantizers import CharacterDequantizer, Dequantizer
from tessella.progress import counted

SAMPLES = 100  # of the bound, where a call does not say
POINTS_AT_ONCE = {"cpu": 2**10}  # what a layer makes of them stays in the cache: twice as fast as 2**15
POINTS_AT_ONCE_ELSEWHERE = 2**15
FEW = 16  # tokens of a row that these numbers are meant for; of longer rows fewer go together


class SemiDiscrete(nn.Module):
    """log P(row) >= E_q log 1/S sum_s p(x_s) / q(x_s | row): any density of points as a model of rows.

    A row is (codes,) or (codes, numbers), or a window of a text, (characters,); P is a mass in categories and integers
    and a density in real numbers.

    Args:
        dequantizer: q(x | row).
        density: p(x), over (G + R, D) points.
        train_samples: S of the training objective; 1 is the ELBO, more is tighter and dearer.
        validation_samples: S of the per-row values that training validates with.
        tokens: of a row, where they are many: the memory that it takes grows with them.
    """

    exact = False

    def __init__(
        self,
        dequantizer: Dequantizer | CharacterDequantizer,
        density: Density,
        train_samples: int = 1,
        validation_samples: int = 8,
        tokens: int = FEW,
    ):
        super().__init__()
        self._longer = max(1, tokens // FEW)
        self.dequantizer, self.density = dequantizer, density
        self.train_samples, self.validation_samples = train_samples, validation_samples

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def _points_at_once(self) -> int:
        return max(1, POINTS_AT_ONCE.get(self.device.type, POINTS_AT_ONCE_ELSEWHERE) // self._longer)

    def elbo(self, *batch: Tensor) -> Tensor:
        """log p(x) - log q(x | row) for one draw x per row: an unbiased estimate of a lower bound, (B)."""
        x, log_q = self.dequantizer.dequantize(*batch)
        return self.density.log_prob(x) - log_q

    def log_weights(self, *batch: Tensor, samples: int) -> Tensor:
        """`samples` independent values of `elbo` per row, (S, B)."""
        repeated = (part.repeat(samples, *[1] * (part.dim() - 1)) for part in batch)
        return self.elbo(*repeated).view(samples, len(batch[0]))

    def log_prob(self, *batch: Tensor, samples: int | None = None) -> Tensor:
        """The importance-weighted bound on log P, (B); the memory it takes does not grow with B or S."""
        chunks = self.chunked_log_weights(*batch, samples=SAMPLES if samples is None else samples)
        return torch.cat([log_mean_exp(weights) for weights in chunks])

    def chunked_log_weights(self, *batch: Tensor, samples: int) -> list[Tensor]:
        """`log_weights` of a few rows at a time, a few samples at a time: tensors (S, b)."""
        points = self._points_at_once
        rows = max(1, points // samples)
        together = min(samples, points)
        counts = [min(together, samples - start) for start in range(0, samples, together)]
        parts: list[Batch] = list(zip(*(part.split(rows) for part in batch), strict=True))
        return [torch.cat([self.log_weights(*part, samples=n) for n in counts]) for part in counted(parts)]

    @torch.no_grad()
    def sample(self, rows: int) -> Batch:
        """New rows."""
        places = torch.arange(rows).split(self._points_at_once)
        parts = [self.dequantizer.quantize(self.density.sample((len(part),))) for part in counted(places)]
        return tuple(torch.cat(column) for column in zip(*parts, strict=True))

    def loss(self, *batch: Tensor) -> Tensor:
        """Mean negative bound of a batch, the training objective."""
        return -log_mean_exp(self.log_weights(*batch, samples=self.train_samples)).mean()

    def nll(self, *batch: Tensor) -> Tensor:
        """Negative bound of each row, for validation."""
        return -self.log_prob(*batch, samples=self.validation_samples)

    @torch.no_grad()
    def initialize(self, *batch: Tensor) -> None:
        """Data-dependent initialisation of the density."""
        self.density.initialize(self.dequantizer.dequantize(*batch)[0])


def log_mean_exp(log_weights: Tensor) -> Tensor:
    """log 1/S sum_s exp(w_s) over the first dimension."""
    return torch.logsumexp(log_weights, 0) - log(len(log_weights))
