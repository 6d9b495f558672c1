"""A disjoint mixture that cuts every dimension for itself."""

from math import log

import torch
from torch import Tensor, nn

from tessella.bijections import CellBijection, Profile
from tessella.densities.base import Density
from tessella.geometry import Tessellation


class DimensionwiseMixture(Density):
    """log p(x) = log p_comp(y) + sum_j log p(k_j | y) + sum_j log|dy_j/dx_j|,  y_j = f_(k_j)^-1(x_j).

    k_j is the interval that holds x_j, each of which is stretched onto the whole line; all K^D combinations of
    intervals share one component, and a gate says how its mass is shared among them. Exact, like `DisjointMixture`,
    but the pieces are boxes of a grid that is parallel to the axes. With piecewise linear maps in place of ours it is
    the model of Dinh et al.

    Args:
        tessellation: one of the line for each of the D dimensions, anchors (D, K, 1), all of K cells.
        component: density of R^D.
        gate: network y (*batch, D) -> (*batch, D K), what to add to the logits of p(k_j | y).
        squashing: profile of the maps, see `bijections.squashing`.
        scale: g of the maps at the start.
        steady: of the maps, see `CellBijection`: how slowly walls learn.

    References:
        L. Dinh, J. Sohl-Dickstein, H. Larochelle, R. Pascanu, "A RAD approach to deep mixture models", 2019.
    """

    def __init__(
        self,
        tessellation: Tessellation,
        component: Density,
        gate: nn.Module,
        squashing: Profile = "root",
        scale: float = 0.2,
        steady: float = 0.0,
    ):
        super().__init__()
        dims, cells, size = tessellation.free.shape
        if size != 1 or component.event_shape != (dims,):
            raise ValueError(
                f"tessellation: got anchors {(dims, cells, size)} for a component of {component.event_shape}; "
                "expected anchors (D, K, 1), intervals of each dimension"
            )
        self.map, self.component, self.gate = CellBijection(tessellation, squashing, steady=steady), component, gate
        nn.init.constant_(self.map.log_scale, log(scale))
        self.event_shape = (dims,)
        self.logits = nn.Parameter(torch.zeros(dims, cells))

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        cell = self.map.tessellation.nearest(x[..., None])
        y, ladj = self.map.inverse_and_ladj(x[..., None], cell)
        share = self._log_shares(y[..., 0]).take_along_dim(cell[..., None], -1)[..., 0]
        return self.component.log_prob(y[..., 0]) + (share + ladj).sum(-1)

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        y = self.component.sample(shape)
        cell = torch.distributions.Categorical(logits=self._log_shares(y), validate_args=False).sample()
        return self.map.forward_and_ladj(y[..., None], cell)[0][..., 0]

    @torch.no_grad()
    def initialize(self, x: Tensor, context: Tensor | None = None) -> None:
        """Anchors at quantiles of the points (*batch, D), one scale for each interval, shares as the points fall."""
        points = x.reshape(-1, *self.event_shape)
        dims, cells = self.logits.shape
        levels = (torch.arange(cells, device=x.device) + 0.5) / cells
        self.map.tessellation.move_anchors(points.quantile(levels.to(points), 0).T[..., None])
        spread = self.map.tessellation.spacing()
        self.map.log_scale.copy_(torch.where(spread > 0, spread / 2, 1).log())
        cell = self.map.tessellation.nearest(points[..., None])
        counts = torch.stack([torch.bincount(cell[:, j], minlength=cells) for j in range(dims)])
        self.logits.copy_(counts.add(1).log())
        self.component.initialize(self.map.inverse_and_ladj(points[..., None], cell)[0][..., 0])

    def _log_shares(self, y: Tensor) -> Tensor:
        """log p(k | y), (*batch, D, K)."""
        logits: Tensor = self.logits + self.gate(y).unflatten(-1, self.logits.shape)
        return logits.log_softmax(-1)
