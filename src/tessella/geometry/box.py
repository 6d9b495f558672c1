"""The box around a tessellation: optional, fixed or learned."""

from typing import Self

import torch
from torch import Tensor, nn

from tessella import checks


class Box(nn.Module):
    """{x : lo_j < x_j < hi_j}, with lo = centre - radius, hi = centre + radius, radius = exp(log_radius).

    Args:
        lo: lower corner, (D,) shared by all variables or (N, D).
        hi: upper corner, same shape.
        learnable: make centre and radius parameters. The box stays a box whatever the optimizer does.

    >>> Box.cube(3.0, dim=2).bounds()
    (tensor([-3., -3.]), tensor([3., 3.]))
    """

    centre: Tensor
    log_radius: Tensor

    def __init__(self, lo: Tensor, hi: Tensor, learnable: bool = False):
        super().__init__()
        checks.floating("lo", lo)
        checks.floating("hi", hi, lo.dtype)
        if lo.shape != hi.shape or lo.dim() not in (1, 2):
            raise ValueError(
                f"lo, hi: got shapes {tuple(lo.shape)} and {tuple(hi.shape)}; expected (D,) or (N, D), both the same"
            )
        checks.finite("lo", lo)
        checks.finite("hi", hi)
        if not bool((lo < hi).all()):
            where = (lo >= hi).nonzero()[0].tolist()
            raise ValueError(
                f"lo, hi: lo = {lo[tuple(where)]:g} and hi = {hi[tuple(where)]:g} at {where}; expected lo < hi"
            )
        centre, log_radius = (lo + hi) / 2, ((hi - lo) / 2).log()
        if learnable:
            self.centre, self.log_radius = nn.Parameter(centre), nn.Parameter(log_radius)
        else:
            self.register_buffer("centre", centre)
            self.register_buffer("log_radius", log_radius)

    @classmethod
    def cube(cls, radius: float, dim: int, learnable: bool = False) -> Self:
        """The cube [-radius, radius]^dim."""
        corner = torch.full((dim,), float(radius))
        return cls(-corner, corner, learnable)

    def bounds(self) -> tuple[Tensor, Tensor]:
        """Lower and upper corner, as given at construction (up to rounding) until learned."""
        radius = self.log_radius.exp()
        return self.centre - radius, self.centre + radius

    @property
    def dim(self) -> int:
        return self.centre.shape[-1]
