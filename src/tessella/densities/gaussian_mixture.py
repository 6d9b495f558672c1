"""The mixture of Gaussians with full covariances: what mixtures of flows start from, and are compared with."""

from math import log, pi
from typing import Self

import torch
from torch import Tensor, nn

from tessella.bijections import CellAffine
from tessella.densities.base import Density


class GaussianMixture(Density):
    """log p(x) = log sum_k p(k) N(x; m_k, C_k): components overlap, and all are evaluated at every point.

    Each Gaussian is kept as the affine map that makes it standard (`CellAffine`); all begin as that.

    Args:
        components: their number K.
        dim: D.

    >>> mixture = GaussianMixture.of(torch.tensor([0.5, 0.5]), torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1, 1))
    >>> mixture.log_prob(torch.zeros(1, 1)).exp()  # exp(-1/2) / sqrt(2 pi)
    tensor([0.2420], grad_fn=<ExpBackward0>)
    """

    def __init__(self, components: int, dim: int):
        super().__init__()
        if components < 1:
            raise ValueError(f"components: got {components}; expected at least 1")
        self.event_shape = (dim,)
        self.logits = nn.Parameter(torch.zeros(components))
        self.whitening = CellAffine(components, dim)

    @classmethod
    def of(cls, weights: Tensor, means: Tensor, covariances: Tensor) -> Self:
        """The mixture with these weights (K,), means (K, D) and covariances (K, D, D)."""
        mixture = cls(*means.shape).to(means)
        with torch.no_grad():
            mixture.logits.copy_(weights.log())
            mixture.whitening.whiten(means, covariances)
        return mixture

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        return self.log_joint(x).logsumexp(-1)

    def log_joint(self, x: Tensor) -> Tensor:
        """log p(x, k), (*batch, D) -> (*batch, K)."""
        u, ladj = self.whitening.everywhere(x)
        log_normal = -0.5 * u.square().sum(-1) - 0.5 * log(2 * pi) * u.shape[-1]
        return self.log_weights() + log_normal + ladj

    def log_weights(self) -> Tensor:
        """log p(k), (K,)."""
        return self.logits.log_softmax(-1)

    def means(self) -> Tensor:
        """m_k, (K, D)."""
        cells = torch.arange(len(self.logits), device=self.logits.device)
        return self.whitening.inverse_and_ladj(torch.zeros_like(self.whitening.shifts), cells)[0]

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        k = torch.distributions.Categorical(logits=self.logits, validate_args=False).sample(shape)
        u = torch.randn(*shape, *self.event_shape, dtype=self.logits.dtype, device=self.logits.device)
        return self.whitening.inverse_and_ladj(u, k)[0]
