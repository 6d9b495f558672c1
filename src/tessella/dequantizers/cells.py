"""The geometries of dequantization: which region of space belongs to which category.

A geometry places noise u (B, N, D) into the regions of the codes (B, N) by a bijection for each code, and tells the
code of any point. Variables may have different numbers of categories. A geometry that needs D_j dimensions for variable
j leaves the other D - D_j free: they carry noise that the density models too, which
keeps the bound valid (an augmented flow).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.bijections import CellBijection
from tessella.dequantizers.profiles import profile_positions, spread_out
from tessella.geometry import Box, Laguerre, Tessellation, Voronoi, binary_dim

NARROW = 0.1  # spread of narrow noise in a cell, as a share of the way to its nearest wall


class Cells(nn.Module, ABC):
    """Regions R_1, ..., R_K of R^D for every variable, with a bijection R^D <-> R_k for each."""

    counts: tuple[int, ...]
    dim: int

    @abstractmethod
    def forward(self, u: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Noise u (B, N, D) -> points of the regions, and the log-determinant per variable (B, N)."""

    @abstractmethod
    def inverse(self, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """The inverse of `forward`, with the log-determinant of the inverse (B, N)."""

    @abstractmethod
    def quantize(self, x: Tensor) -> Tensor:
        """The code of the region that holds each point: (B, N, D) -> (B, N)."""

    def arrange(self, codes: Tensor) -> None:
        """Move regions that can be moved to where training rows (B, N) suggest; fixed geometries stay."""

    @abstractmethod
    def centre(self, codes: Tensor) -> Tensor:
        """A point well inside each region: (B, N) -> (B, N, D)."""


class VoronoiCells(Cells):
    """Learned cells of a tessellation, Voronoi or Laguerre, in any dimension."""

    kind: type[Tessellation] = Voronoi

    def __init__(
        self, counts: Sequence[int], dim: int, box: float = 0.0, squashing: str = "softsign", shared: bool = False
    ):
        super().__init__()
        self.counts, self.dim = tuple(counts), dim
        if shared and len(set(counts)) > 1:
            raise ValueError(
                f"shared: got variables of {sorted(set(counts))} categories; expected equally many in each"
            )
        cells = max(counts) if shared else counts
        self.map = CellBijection(self.kind.create(cells, dim, box=Box.cube(box, dim) if box else None), squashing)

    def arrange(self, codes: Tensor) -> None:
        positions = profile_positions(codes, self.counts, self.dim)
        tessellation = self.map.tessellation
        tessellation.move_anchors(positions.mean(0) if tessellation.shared else positions)

    @torch.no_grad()
    def spread_out(self) -> None:
        """Move the anchors apart, neighbours staying neighbours."""
        tessellation = self.map.tessellation
        positions = spread_out(tessellation.anchors.reshape(-1, max(self.counts), self.dim), tessellation.counts)
        tessellation.move_anchors(positions.view_as(tessellation.anchors))

    @torch.no_grad()
    def narrow(self, share: float) -> None:
        """Scale the maps so that noise of spread 1 has this share of the way to the nearest wall as its spread."""
        to_wall = self.map.tessellation.spacing() / 2
        self.map.log_scale.copy_((share * torch.where(to_wall > 0, to_wall, 1)).log())

    def forward(self, u: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        return self.map.forward_and_ladj(u, codes)

    def inverse(self, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        return self.map.inverse_and_ladj(x, codes)

    def quantize(self, x: Tensor) -> Tensor:
        return self.map.tessellation.nearest(x)

    def centre(self, codes: Tensor) -> Tensor:
        return self.map.tessellation.anchor_of(codes)


class LaguerreCells(VoronoiCells):
    """Learned power cells: they grow and shrink without moving their anchors."""

    kind = Laguerre


class _Fixed(Cells):
    """Shared by the fixed geometries: which dimensions variable j uses."""

    used: Tensor
    count: Tensor

    def __init__(self, counts: Sequence[int], dim: int, needed: Sequence[int], name: str):
        super().__init__()
        self.counts, self.dim = tuple(counts), dim
        if dim < max(needed):
            raise ValueError(
                f"dim: got {dim}; expected at least {max(needed)}, which {name} cells of {max(counts)} need"
            )
        self.register_buffer(
            "used", torch.arange(dim) < torch.tensor(list(needed))[:, None], persistent=False
        )  # (N, D)
        self.register_buffer("count", torch.tensor(self.counts), persistent=False)

    def _ladj(self, log_slope: Tensor) -> Tensor:
        """Sum of elementwise log-derivatives over the dimensions that are used."""
        return torch.where(self.used, log_slope, 0).sum(-1)


class ArgmaxCells(_Fixed):
    """R_k = { x in R^K : x_k > x_i for all i }:  x_k = u_k,  x_i = x_k - softplus(x_k - u_i).

    log-derivative of x_i in u_i: log sigmoid(x_k - u_i).
    """

    def __init__(self, counts: Sequence[int], dim: int):
        super().__init__(counts, dim, counts, "argmax")

    def forward(self, u: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        top = u.gather(-1, codes[..., None])
        x, log_slope = _below(top, u)
        own = _one_hot(codes, self.dim)
        return torch.where(self.used & ~own, x, u), self._ladj(torch.where(own, 0, log_slope))

    def inverse(self, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        top = x.gather(-1, codes[..., None])
        u, log_slope = _unbelow(top, x)
        own = _one_hot(codes, self.dim)
        return torch.where(self.used & ~own, u, x), -self._ladj(torch.where(own, 0, log_slope))

    def quantize(self, x: Tensor) -> Tensor:
        return x.masked_fill(~self.used, -torch.inf).argmax(-1)

    def centre(self, codes: Tensor) -> Tensor:
        return _one_hot(codes, self.dim).to(torch.get_default_dtype())


class SimplexCells(_Fixed):
    """R_k of the simplex in K - 1 logits (the K-th is fixed at 0): the largest of x_1, ..., x_(K-1), 0.

    k < K: x_k = softplus(u_k) > 0, the others below it as in argmax. k = K: all x_i = -softplus(-u_i) < 0.
    """

    def __init__(self, counts: Sequence[int], dim: int):
        super().__init__(counts, dim, [max(1, count - 1) for count in counts], "simplex")

    def forward(self, u: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        own, last = self._roles(codes)
        mine = u.masked_fill(~own, 0).sum(-1, keepdim=True)
        top = torch.where(last, 0, functional.softplus(mine))
        x, log_slope = _below(top, u)
        x, log_slope = torch.where(own, top, x), torch.where(own, functional.logsigmoid(mine), log_slope)
        return torch.where(self._bound, x, u), self._sum(log_slope)

    def inverse(self, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        own, last = self._roles(codes)
        top = x.masked_fill(~own, 0).sum(-1, keepdim=True)
        mine = _softplus_inverse(torch.where(last, 1, top))
        u, log_slope = _unbelow(top, x)
        u, log_slope = torch.where(own, mine, u), torch.where(own, functional.logsigmoid(mine), log_slope)
        return torch.where(self._bound, u, x), -self._sum(log_slope)

    def quantize(self, x: Tensor) -> Tensor:
        logits = x.masked_fill(~self._bound, -torch.inf)
        largest, code = logits.max(-1)
        return torch.where(largest > 0, code, self.count - 1)

    def centre(self, codes: Tensor) -> Tensor:
        own, last = self._roles(codes)
        return torch.where(last, -1.0, own.to(torch.get_default_dtype()))

    @property
    def _bound(self) -> Tensor:
        """Dimensions with a condition on them: none for a variable with a single category."""
        return self.used & (self.count > 1)[:, None]

    def _sum(self, log_slope: Tensor) -> Tensor:
        return torch.where(self._bound, log_slope, 0).sum(-1)

    def _roles(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        last = (codes == self.count - 1)[..., None]
        return _one_hot(codes, self.dim) & ~last, last


class BinaryCells(_Fixed):
    """Binary argmax: the sign of x_j is bit j of the code, x_j = +-softplus(u_j), in ceil(log2 K) dimensions.

    Sign patterns beyond the last category count as the last one; the bound ignores their mass and stays valid.
    """

    def __init__(self, counts: Sequence[int], dim: int):
        super().__init__(counts, dim, [binary_dim(count) for count in counts], "binary")

    def forward(self, u: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        x = functional.softplus(u) * self._signs(codes).to(u.dtype)
        return torch.where(self.used, x, u), self._ladj(functional.logsigmoid(u))

    def inverse(self, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        u = _softplus_inverse(torch.where(self.used, x.abs(), 1))
        return torch.where(self.used, u, x), -self._ladj(functional.logsigmoid(u))

    def quantize(self, x: Tensor) -> Tensor:
        bits = (x > 0) & self.used
        code = (bits * 2 ** torch.arange(self.dim, device=x.device)).sum(-1)
        return torch.minimum(code, self.count - 1)

    def centre(self, codes: Tensor) -> Tensor:
        return self._signs(codes).to(torch.get_default_dtype())

    def _signs(self, codes: Tensor) -> Tensor:
        return 2 * ((codes[..., None] >> torch.arange(self.dim, device=codes.device)) & 1) - 1


class OrdinalCells(_Fixed):
    """R_k = { x : k <= x_1 + K/2 < k + 1 }:  x_1 = k - K/2 + sigmoid(u_1). With logistic u the noise is uniform."""

    def __init__(self, counts: Sequence[int], dim: int):
        super().__init__(counts, dim, [1] * len(counts), "ordinal")

    def forward(self, u: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        x = self._low(codes, u) + u.sigmoid()
        return torch.where(self.used, x, u), self._ladj(functional.logsigmoid(u) + functional.logsigmoid(-u))

    def inverse(self, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        share = torch.where(self.used, x - self._low(codes, x), 0.5)
        u = share.clamp(torch.finfo(x.dtype).eps, 1 - torch.finfo(x.dtype).eps).logit()
        return torch.where(self.used, u, x), -self._ladj(functional.logsigmoid(u) + functional.logsigmoid(-u))

    def quantize(self, x: Tensor) -> Tensor:
        code = (x[..., 0] + self.count / 2).floor().long()
        return torch.minimum(code.clamp_min(0), self.count - 1)

    def centre(self, codes: Tensor) -> Tensor:
        middle = self._low(codes, torch.zeros((), dtype=torch.get_default_dtype())) + 0.5
        return torch.where(self.used, middle, 0)

    def _low(self, codes: Tensor, like: Tensor) -> Tensor:
        return (codes - self.count / 2).to(like.dtype)[..., None]


def _below(top: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """x = top - softplus(top - u) < top, and log dx/du = log sigmoid(top - u)."""
    return top - functional.softplus(top - u), functional.logsigmoid(top - u)


def _unbelow(top: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse of `_below` in u, with the log-derivative of the forward map there."""
    u = top - _softplus_inverse((top - x).clamp_min(torch.finfo(x.dtype).tiny))
    return u, functional.logsigmoid(top - u)


def _softplus_inverse(v: Tensor) -> Tensor:
    """log(e^v - 1) = v + log(1 - e^-v)."""
    return v + torch.log(-torch.expm1(-v.clamp_min(torch.finfo(v.dtype).tiny)))


def _one_hot(codes: Tensor, dim: int) -> Tensor:
    return codes[..., None] == torch.arange(dim, device=codes.device)


CELLS: dict[str, type[Cells]] = {
    "voronoi": VoronoiCells,
    "laguerre": LaguerreCells,
    "simplex": SimplexCells,
    "argmax": ArgmaxCells,
    "binary-argmax": BinaryCells,
    "ordinal": OrdinalCells,
}
