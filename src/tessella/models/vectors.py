"""Vectors of real numbers under a density, ready to be trained, scored and sampled."""

import torch
from torch import Tensor, nn

from tessella.contracts import Batch
from tessella.densities import Density, DensityConfig


class VectorModel(nn.Module):
    """Maximum likelihood: loss = -mean log p(x), for any density of points.

    Args:
        density: p.

    >>> from tessella.densities import Gaussian
    >>> VectorModel(Gaussian((2,))).nll(torch.zeros(3, 2))
    tensor([1.8379, 1.8379, 1.8379])
    """

    exact = True

    def __init__(self, density: Density):
        super().__init__()
        self.density = density

    def loss(self, x: Tensor) -> Tensor:
        """Mean negative log-likelihood of a batch."""
        return self.nll(x).mean()

    def nll(self, x: Tensor) -> Tensor:
        """-log p(x) of each row."""
        return -self.density.log_prob(x)

    def log_prob(self, x: Tensor, samples: int | None = None) -> Tensor:
        """log p(x) of each row; `samples` changes nothing."""
        return self.density.log_prob(x)

    @torch.no_grad()
    def sample(self, rows: int) -> Batch:
        """New vectors, (rows, D)."""
        return (self.density.sample((rows,)),)

    @torch.no_grad()
    def initialize(self, x: Tensor) -> None:
        """Data-dependent initialisation of the density."""
        self.density.initialize(x)


def build_vectors(config: DensityConfig, dim: int) -> VectorModel:
    """The model of vectors of R^dim."""
    return VectorModel(config.build((dim,)))
