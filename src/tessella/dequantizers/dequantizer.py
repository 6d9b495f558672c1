"""q(x | codes): noise that depends on the row, placed into the regions of its codes."""

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.densities import Density
from tessella.dequantizers.cells import Cells
from tessella.nets import MLP, TokenTransformer

# A point that rounding carried over a wall is pulled this far back towards the middle of its region.
PROJECTED = 1e-3
# Rounding moves a point near a wall by less than this, there and back; points outside their region come back elsewhere.
SAME_PLACE = 1e-2


class Dequantizer(nn.Module):
    """x = f(u, codes), u ~ noise(. | context(codes));  log q(x | codes) = log noise(u) - ladj.

    Args:
        cells: the geometry.
        noise: conditional density over (N, D) points; its context is what `context` returns.
        context: a `RowContext`, codes (B, N) -> what the noise is conditioned on.
    """

    count: Tensor

    def __init__(self, cells: Cells, noise: Density, context: nn.Module):
        super().__init__()
        self.cells, self.noise, self.context = cells, noise, context
        self.register_buffer("count", torch.tensor(cells.counts), persistent=False)

    def dequantize(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Codes (B, N) -> points (B, N, D) with quantize(x) == codes, and log q(x | codes) (B); reparameterised."""
        self._check(codes)
        u, log_noise = self.noise.sample_and_log_prob((len(codes),), self.context(codes))
        x, ladj = self.cells.forward(u, codes)
        return self._project(x, codes), log_noise - ladj.sum(-1)

    def log_prob(self, x: Tensor, codes: Tensor) -> Tensor:
        """log q(x | codes) of given points, -inf outside the regions of their codes."""
        self._check(codes)
        u, ladj = self.cells.inverse(x, codes)
        log_q = self.noise.log_prob(u, self.context(codes)) + ladj.sum(-1)
        return torch.where(self._inside(x, u, codes), log_q, -torch.inf)

    def quantize(self, x: Tensor) -> Tensor:
        """Points (B, N, D) -> codes (B, N)."""
        return self.cells.quantize(x)

    def _inside(self, x: Tensor, u: Tensor, codes: Tensor) -> Tensor:
        """Whether the displacements u lead back to the points: fixed geometries leave space that is nobody's, (B)."""
        return same_place(self.cells.forward(u, codes)[0], x)

    def _project(self, x: Tensor, codes: Tensor) -> Tensor:
        """Undo what rounding did: a point across a wall goes back by a little, and to the middle if that fails."""
        with torch.no_grad():
            centre = self.cells.centre(codes).to(x.dtype)
            back = centre + (1 - PROJECTED) * (x - centre)
            back = torch.where((self.cells.quantize(back) == codes)[..., None], back, centre)
            missed = (self.cells.quantize(x) != codes)[..., None]
        return torch.where(missed, back, x)

    def _check(self, codes: Tensor) -> None:
        checks.indices("codes", codes, (len(codes), len(self.cells.counts)), self.count)


def same_place(x: Tensor, y: Tensor) -> Tensor:
    """Whether points (B, N, D) differ by rounding only, all N of them: (B)."""
    return ((x - y).abs() < SAME_PLACE * (1 + y.abs())).flatten(1).all(1)


class NoContext(nn.Module):
    """For noise that does not look at the row."""

    def forward(self, codes: Tensor) -> None:
        return None


class RowContext(nn.Module):
    """Embeddings of the codes, mixed by a network: tokens (B, N, size), or one vector (B, size) for the row.

    One table of sum K_j embeddings: nothing is one-hot, nothing padded.
    """

    first: Tensor

    def __init__(self, counts: tuple[int, ...], size: int, width: int, layers: int, tokens: bool, fast: bool = False):
        super().__init__()
        ends = torch.tensor(counts).cumsum(0)
        self.register_buffer("first", ends - torch.tensor(counts), persistent=False)
        self.embedding = nn.Embedding(int(ends[-1]), size)
        variables = len(counts)
        self.tokens = tokens
        self.mix: nn.Module = (
            TokenTransformer(variables, size, size, width, layers, fast=fast)
            if tokens
            else MLP(variables * size, size, width, layers)
        )

    def forward(self, codes: Tensor) -> Tensor:
        embedded = self.embedding(codes + self.first)  # (B, N, size)
        return embedded + self.mix(embedded) if self.tokens else self.mix(embedded.flatten(-2))
