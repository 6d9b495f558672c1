"""Voronoi and Laguerre tessellations."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tessella import kernels
from tessella.geometry.box import Box
from tessella.geometry.tessellation import KEPT_FROM_WALL, Tessellation, take


class Voronoi(Tessellation):
    """V_k = { x : |x - x_k| < |x - x_i| for all i }.

    >>> Voronoi(torch.tensor([[-1.0, 0.0], [1.0, 0.0]])).nearest(torch.tensor([[0.2, 5.0]]))
    tensor([1])
    """

    def _weights(self, anchors: Tensor) -> Tensor | None:
        return self._offsets


class Laguerre(Tessellation):
    """L_k = { x : |x - x_k|^2 - w_k < |x - x_i|^2 - w_i for all i }, w_k = r_k^2, r_k = d_k sigmoid(rho_k).

    d_k is the distance from anchor k to the nearest other one, so r_k < d_k and every anchor lies inside its own cell:
    w_i - w_k <= w_i < d_i^2 <= |x_i - x_k|^2. Cells can grow and shrink without moving their anchors.
    """

    def __init__(
        self, anchors: Tensor, box: Box | None = None, cells: Sequence[int] | None = None, learnable: bool = True
    ):
        super().__init__(anchors, box, cells, learnable)
        rho = torch.zeros(anchors.shape[:-1], dtype=anchors.dtype)
        self.rho: Tensor
        if learnable:
            self.rho = nn.Parameter(rho)
        else:
            self.register_buffer("rho", rho)

    def _weights(self, anchors: Tensor) -> Tensor:
        rho = self.rho.reshape(anchors.shape[0], -1)
        radius = self._spacing(anchors) * ((1 - KEPT_FROM_WALL) * rho.sigmoid())
        return radius.square() if self._offsets is None else radius.square() + self._offsets

    def _spacing(self, anchors: Tensor) -> Tensor:
        """d_k: distance to the nearest other anchor (0 where there is none), with gradients; (G, K)."""
        if anchors.shape[-1] == 1:
            return torch.zeros_like(anchors[:, 0])
        other = self._nearest_other(anchors.detach())
        gap = anchors - take(anchors, other)
        return (gap * gap).sum(1).add(torch.finfo(gap.dtype).tiny).sqrt()

    def _nearest_other(self, anchors: Tensor) -> Tensor:
        """Index of the nearest other anchor; the cell itself for padding and for variables with one cell."""
        rows = []
        own = torch.arange(anchors.shape[-1], device=anchors.device)
        for block in own.split(kernels.CELLS_PER_BLOCK):
            gap = kernels.squared_distances(anchors[..., block], anchors)
            gap = gap.masked_fill(block[:, None] == own, torch.inf)
            if self._offsets is not None:
                gap = gap - self._offsets[:, None] - self._offsets[:, block, None]
            closest, index = gap.min(-1)
            rows.append(torch.where(closest.isinf(), block, index))
        return torch.cat(rows, 1)
