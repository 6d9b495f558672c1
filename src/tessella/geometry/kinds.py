"""Voronoi and Laguerre tessellations."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tessella.geometry.box import Box
from tessella.geometry.tessellation import KEPT_FROM_WALL, Tessellation


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

    def parts(self) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        free, centre, log_radius, _ = super().parts()
        return free, centre, log_radius, self._weights(self._anchor_columns())
