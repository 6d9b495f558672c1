"""Rows of categories and numbers under a density of points."""

import torch
from torch import Tensor

from tessella.contracts import Batch
from tessella.densities import Density
from tessella.dequantizers import CharacterDequantizer, Dequantizer
from tessella.models.bound import FEW, ImportanceBound
from tessella.progress import counted


class SemiDiscrete(ImportanceBound):
    """log P(row) >= E_q log 1/S sum_s p(x_s) / q(x_s | row): any density of points as a model of rows.

    A row is (codes,) or (codes, numbers), or a window of a text, (characters,); P is a mass in categories and integers
    and a density in real numbers.

    Args:
        dequantizer: q(x | row).
        density: p(x), over (G + R, D) points.
        train_samples, validation_samples, tokens: see `ImportanceBound`.
    """

    def __init__(
        self,
        dequantizer: Dequantizer | CharacterDequantizer,
        density: Density,
        train_samples: int = 1,
        validation_samples: int = 8,
        tokens: int = FEW,
    ):
        super().__init__(train_samples, validation_samples, tokens)
        self.dequantizer, self.density = dequantizer, density

    def elbo(self, *batch: Tensor) -> Tensor:
        x, log_q = self.dequantizer.dequantize(*batch)
        return self.density.log_prob(x) - log_q

    @torch.no_grad()
    def sample(self, rows: int) -> Batch:
        """New rows."""
        places = torch.arange(rows).split(self.points_at_once)
        parts = [self.dequantizer.quantize(self.density.sample((len(part),))) for part in counted(places)]
        return tuple(torch.cat(column) for column in zip(*parts, strict=True))

    @torch.no_grad()
    def sample_with_weights(self, rows: int) -> tuple[Batch, Tensor]:
        x = self.density.sample((rows,))
        batch = self.dequantizer.quantize(x)
        return batch, self.density.log_prob(x).double() - self.dequantizer.log_prob(x, *batch).double()

    @torch.no_grad()
    def initialize(self, *batch: Tensor) -> None:
        """Data-dependent initialisation of the density."""
        self.density.initialize(self.dequantizer.dequantize(*batch)[0])
