"""Elementwise affine map that starts by whitening its first batch."""

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.bijections.base import Bijection


class ActNorm(Bijection):
    """y = (x + shift) exp(log_scale), elementwise; ladj = sum log_scale.

    The identity until `initialize` has seen a batch, which sets every output to mean 0 and standard deviation 1. An
    explicit call, rather than a hidden one in the first forward pass, keeps the training step one compiled graph.

    Args:
        shape: shape of one point, (D,) or (N, D).

    >>> norm = ActNorm((1,))
    >>> norm.initialize(torch.tensor([[1.0], [3.0]])).flatten().tolist()
    [-1.0, 1.0]
    """

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.event_dim = len(shape)
        self.shift = nn.Parameter(torch.zeros(shape))
        self.log_scale = nn.Parameter(torch.zeros(shape))

    @torch.no_grad()
    def initialize(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Set shift and scale from a batch (*batch, *shape) with at least two points; returns the whitened batch."""
        checks.trailing("x", x, tuple(self.shift.shape), "shape")
        checks.finite("x", x)
        points = x.reshape(-1, *self.shift.shape)
        if len(points) < 2:
            raise ValueError(f"x: got {len(points)} points; expected at least 2 to estimate a standard deviation")
        self.shift.copy_(-points.mean(0))
        self.log_scale.copy_(-points.std(0, correction=0).clamp_min(1e-3).log())
        return self.forward_and_ladj(x)[0]

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return (x + self.shift) * self.log_scale.exp(), self._ladj(x)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return y * (-self.log_scale).exp() - self.shift, -self._ladj(y)

    def _ladj(self, x: Tensor) -> Tensor:
        return self.log_scale.sum().expand(x.shape[: x.dim() - self.event_dim])
