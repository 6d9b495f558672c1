"""A normalizing flow: a base density seen through a bijection."""

from torch import Tensor

from tessella.bijections import Bijection
from tessella.densities.base import Density


class Flow(Density):
    """log p(x) = log base(f(x)) + log|det df/dx|: the bijection goes from data to noise."""

    def __init__(self, base: Density, bijection: Bijection):
        super().__init__()
        self.base, self.bijection = base, bijection
        self.event_shape = base.event_shape

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        u, ladj = self.bijection.forward_and_ladj(x, context)
        return self.base.log_prob(u) + ladj

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        return self.bijection.inverse_and_ladj(self.base.sample(shape), context)[0]

    def sample_and_log_prob(self, shape: tuple[int, ...], context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        u = self.base.sample(shape)
        x, ladj = self.bijection.inverse_and_ladj(u, context)
        return x, self.base.log_prob(u) - ladj

    def initialize(self, x: Tensor, context: Tensor | None = None) -> None:
        self.base.initialize(self.bijection.initialize(x, context))
