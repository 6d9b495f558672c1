"""Any zuko flow as a density over (N, D) points."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from torch import Tensor

from tessella.densities.base import Density

if TYPE_CHECKING:
    from zuko.lazy import LazyDistribution


class ZukoDensity(Density):
    """log p(x) = flow().log_prob(flatten x), for a zuko flow over N * D features."""

    def __init__(self, flow: "LazyDistribution", event_shape: tuple[int, ...]):
        super().__init__()
        self.flow, self.event_shape = flow, event_shape

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        log_prob: Tensor = self.flow(context).log_prob(x.flatten(-len(self.event_shape)))
        return log_prob

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        points: Tensor = self.flow(context).sample(shape).unflatten(-1, self.event_shape)
        return points


def spline_density(event_shape: tuple[int, ...], transforms: int, hidden: Sequence[int], bins: int) -> ZukoDensity:
    """zuko's neural spline flow of points of this shape."""
    try:
        from zuko.flows import NSF
    except ImportError as error:
        raise ImportError('spline: needs the library zuko; try pip install "tessella[zuko]"') from error
    flow = NSF(prod(event_shape), transforms=transforms, hidden_features=list(hidden), bins=bins)
    return ZukoDensity(flow, event_shape)
