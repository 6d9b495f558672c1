"""Any zuko flow as a density over (N, D) points."""

from typing import TYPE_CHECKING, Any

from torch import Tensor

from tessella.densities.base import Density

if TYPE_CHECKING:
    from zuko.lazy import LazyDistribution


class ZukoDensity(Density):
    """log p(x) = flow().log_prob(flatten x), for a zuko flow over N * D features."""

    def __init__(self, flow: "LazyDistribution", event_shape: tuple[int, ...]):
        super().__init__()
        self.flow, self.event_shape = flow, event_shape

    def log_prob(self, x: Tensor, context: Any = None) -> Tensor:
        return self.flow(context).log_prob(x.flatten(-len(self.event_shape)))

    def sample(self, shape: tuple[int, ...], context: Any = None) -> Tensor:
        return self.flow(context).sample(shape).unflatten(-1, self.event_shape)
