"""What every model whose likelihood is an importance-weighted bound does with its weights."""

from abc import ABC, abstractmethod
from math import log

import torch
from torch import Tensor, nn

from tessella.contracts import Batch
from tessella.progress import counted

SAMPLES = 100  # of the bound, where a call does not say
POINTS_AT_ONCE = {"cpu": 2**10}  # what a layer makes of them stays in the cache: twice as fast as 2**15
POINTS_AT_ONCE_ELSEWHERE = 2**15
FEW = 16  # tokens of a row that these numbers are meant for; of longer rows fewer go together


class ImportanceBound(nn.Module, ABC):
    """log P(row) >= E_q log 1/S sum_s w_s,  w = p(x) / q(x | row), x ~ q.

    Args:
        train_samples: S of the training objective; 1 is the ELBO, more is tighter and dearer.
        validation_samples: S of the per-row values that training validates with.
        tokens: of a row, where they are many: the memory that it takes grows with them.
    """

    exact = False

    def __init__(self, train_samples: int = 1, validation_samples: int = 8, tokens: int = FEW):
        super().__init__()
        self._longer = max(1, tokens // FEW)
        self.train_samples, self.validation_samples = train_samples, validation_samples

    @abstractmethod
    def elbo(self, *batch: Tensor) -> Tensor:
        """log w for one draw x per row: an unbiased estimate of a lower bound, (B)."""

    @abstractmethod
    def sample_with_weights(self, rows: int) -> tuple[Batch, Tensor]:
        """Rows that the model draws, and log w of the points behind them (rows), -inf in q being an infinite weight."""

    @abstractmethod
    def sample(self, rows: int) -> Batch:
        """New rows."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def points_at_once(self) -> int:
        """How many points go through the model together."""
        return max(1, POINTS_AT_ONCE.get(self.device.type, POINTS_AT_ONCE_ELSEWHERE) // self._longer)

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
        points = self.points_at_once
        rows = max(1, points // samples)
        together = min(samples, points)
        counts = [min(together, samples - start) for start in range(0, samples, together)]
        parts: list[Batch] = list(zip(*(part.split(rows) for part in batch), strict=True))
        return [torch.cat([self.log_weights(*part, samples=n) for n in counts]) for part in counted(parts)]

    def loss(self, *batch: Tensor) -> Tensor:
        """Mean negative bound of a batch, the training objective."""
        return -log_mean_exp(self.log_weights(*batch, samples=self.train_samples)).mean()

    def nll(self, *batch: Tensor) -> Tensor:
        """Negative bound of each row, for validation."""
        return -self.log_prob(*batch, samples=self.validation_samples)


def log_mean_exp(log_weights: Tensor) -> Tensor:
    """log 1/S sum_s exp(w_s) over the first dimension."""
    return torch.logsumexp(log_weights, 0) - log(len(log_weights))
