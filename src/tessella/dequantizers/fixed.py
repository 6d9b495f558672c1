"""Fixed regions: the classical dequantizers, each with as many dimensions as its geometry needs, or more."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from tessella.dequantizers.cells import Cells, CellsConfig
from tessella.geometry import binary_dim


class FixedCells(Cells):
    """Shared by the fixed geometries: which dimensions variable j uses."""

    used: Tensor
    count: Tensor

    def __init__(self, counts: Sequence[int], dim: int):
        super().__init__()
        self.counts, self.dim = tuple(counts), dim
        needed = [self.needed(count) for count in counts]
        if dim < max(needed):
            raise ValueError(
                f"dim: got {dim}; expected at least {max(needed)}, "
                f"which {type(self).__name__} of {max(counts)} categories need"
            )
        used = torch.arange(dim) < torch.tensor(needed)[:, None]
        self.register_buffer("used", used, persistent=False)  # (N, D)
        self.register_buffer("count", torch.tensor(self.counts), persistent=False)

    @staticmethod
    @abstractmethod
    def needed(count: int) -> int:
        """Dimensions for a variable of so many categories."""

    def _ladj(self, log_slope: Tensor) -> Tensor:
        """Sum of elementwise log-derivatives over the dimensions that are used."""
        return torch.where(self.used, log_slope, 0).sum(-1)


class ArgmaxCells(FixedCells):
    """R_k = { x in R^K : x_k > x_i for all i }:  x_k = u_k,  x_i = x_k - softplus(x_k - u_i).

    log-derivative of x_i in u_i: log sigmoid(x_k - u_i).
    """

    @staticmethod
    def needed(count: int) -> int:
        return count

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


class SimplexCells(FixedCells):
    """R_k of the simplex in K - 1 logits (the K-th is fixed at 0): the largest of x_1, ..., x_(K-1), 0.

    k < K: x_k = softplus(u_k) > 0, the others below it as in argmax. k = K: all x_i = -softplus(-u_i) < 0.
    """

    @staticmethod
    def needed(count: int) -> int:
        return max(1, count - 1)

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


class BinaryCells(FixedCells):
    """Binary argmax: the sign of x_j is bit j of the code, x_j = +-softplus(u_j), in ceil(log2 K) dimensions.

    Sign patterns beyond the last category count as the last one; the bound ignores their mass and stays valid.
    """

    @staticmethod
    def needed(count: int) -> int:
        return binary_dim(count)

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


class OrdinalCells(FixedCells):
    """R_k = { x : k <= x_1 + K/2 < k + 1 }:  x_1 = k - K/2 + sigmoid(u_1). With logistic u the noise is uniform."""

    @staticmethod
    def needed(count: int) -> int:
        return 1

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


@dataclass(frozen=True)
class FixedConfig(CellsConfig):
    """Shared by the fixed geometries."""

    geometry: ClassVar[type[FixedCells]]
    dim: int = 0
    """Dimensions per variable; 0: as many as the geometry needs."""

    def build(self, counts: Sequence[int], least: int = 1) -> FixedCells:
        return self.geometry(counts, self.dim or max(least, *map(self.geometry.needed, counts)))


@dataclass(frozen=True)
class SimplexConfig(FixedConfig, kind="simplex"):
    """Corners of a simplex, by K - 1 logits."""

    geometry = SimplexCells


@dataclass(frozen=True)
class ArgmaxConfig(FixedConfig, kind="argmax"):
    """The largest of K numbers."""

    geometry = ArgmaxCells


@dataclass(frozen=True)
class BinaryConfig(FixedConfig, kind="binary-argmax"):
    """The signs of ceil(log2 K) numbers, as bits."""

    geometry = BinaryCells


@dataclass(frozen=True)
class OrdinalConfig(FixedConfig, kind="ordinal"):
    """Intervals of one dimension, in order; with `FixedNoise` this is uniform dequantization."""

    geometry = OrdinalCells
