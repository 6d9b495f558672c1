"""Elementwise affine map whose coefficients come from a context."""

from torch import Tensor, nn

from tessella.bijections.base import Bijection, sum_trailing
from tessella.bijections.elementwise import bounded_log_scale


class ContextAffine(Bijection):
    """y = x exp(s) + t,  (s, t) = net(context);  ladj = sum s. On a Gaussian base: a conditional Gaussian.

    Args:
        net: context -> (*batch, [N,] 2 D).
        event_dim: number of trailing dimensions of one point.
    """

    def __init__(self, net: nn.Module, event_dim: int = 1):
        super().__init__()
        self.net, self.event_dim = net, event_dim

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        log_scale, shift = self._coefficients(context, x)
        return x * log_scale.exp() + shift, sum_trailing(log_scale, self.event_dim)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        log_scale, shift = self._coefficients(context, y)
        return (y - shift) * (-log_scale).exp(), -sum_trailing(log_scale, self.event_dim)

    def _coefficients(self, context: Tensor | None, like: Tensor) -> tuple[Tensor, Tensor]:
        raw, shift = self.net(context).chunk(2, -1)
        return bounded_log_scale(raw).reshape(like.shape), shift.reshape(like.shape)
