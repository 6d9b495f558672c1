"""A bijection of vectors as a bijection of (N, D) points."""

from torch import Tensor

from tessella.bijections.base import Bijection


class Flattened(Bijection):
    """f(x) = unflatten(g(flatten x)): a map of R^(N D) applied to tokens (N, D)."""

    event_dim = 2

    def __init__(self, bijection: Bijection):
        super().__init__()
        self.bijection = bijection

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        y, ladj = self.bijection.forward_and_ladj(x.flatten(-2), context)
        return y.view_as(x), ladj

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x, ladj = self.bijection.inverse_and_ladj(y.flatten(-2), context)
        return x.view_as(y), ladj

    def initialize(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        return self.bijection.initialize(x.flatten(-2), context).view_as(x)
