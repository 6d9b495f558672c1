"""q(x | characters): one tessellation for all places of a text, and noise in its cells that knows the text."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.bijections import Chain, ContextAffine, Invert
from tessella.contracts import Batch
from tessella.densities import BASES, Density, Flow
from tessella.densities.couplings import flat_couplings
from tessella.dequantizers.cells import Cells, projected
from tessella.dequantizers.dequantizer import same_place
from tessella.dequantizers.learned import VoronoiCells
from tessella.dequantizers.numbers import Numbers
from tessella.dequantizers.profiles import profile_positions
from tessella.nets import Transformer
from tessella.nets.linear import Linear
from tessella.nets.mlp import zero

NEIGHBOURHOODS = 200_000  # of characters, that places are found from


class CharacterContext(nn.Module):
    """c -> e_c + net(e_c)_t: an embedding of each character, and what a network over both sides adds, (B, n, size).

    Args:
        characters: K.
        size: of the embeddings.
        width, layers: of the network, whose tokens attend to each other; none without layers.
        length: most characters.
        fast: see `Transformer`.
    """

    def __init__(self, characters: int, size: int, width: int, layers: int, length: int, fast: bool = False):
        super().__init__()
        self.embedding = nn.Embedding(characters, size)
        self.mix = Transformer(size, size, width, layers, positions=length, fast=fast) if layers else None

    def forward(self, codes: Tensor) -> Tensor:
        embedded: Tensor = self.embedding(codes)
        return embedded if self.mix is None else embedded + self.mix(embedded)


class CharacterDequantizer(nn.Module):
    """x_t = f_(c_t)(u_t), u_t ~ noise(. | context_t(c));  log q(x | c) = sum_t log noise(u_t) - ladj_t.

    A `Dequantizer` of texts of any length: all places share one geometry.

    Args:
        cells: the geometry of one variable, the character.
        noise: density of D numbers, given a context or not.
        context: characters (B, n) -> (B, n, size), or None where the noise is always the same.
    """

    count: Tensor
    numbers: Numbers | None = None  # a text has none

    def __init__(self, cells: Cells, noise: Density, context: nn.Module | None = None):
        super().__init__()
        self.cells, self.noise, self.context = cells, noise, context
        self.register_buffer("count", torch.tensor(cells.counts), persistent=False)

    def dequantize(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Codes (B, n) -> points (B, n, D) with quantize(x) = codes, and log q(x | codes) (B); reparameterised."""
        codes = codes.long()
        checks.indices("codes", codes, tuple(codes.shape), self.count)
        u, log_noise = self.noise.sample_and_log_prob(tuple(codes.shape), self._told(codes))
        x, ladj = self.cells.forward(u, codes)
        return projected(self.cells, x, codes), (log_noise - ladj).sum(-1)

    def log_prob(self, x: Tensor, codes: Tensor) -> Tensor:
        """log q(x | codes) of points (B, n, D), -inf outside of the cells of their codes: (B)."""
        u, ladj = self.cells.inverse(x, codes)
        log_q = (ladj + self.noise.log_prob(u, self._told(codes))).sum(-1)
        return torch.where(same_place(self.cells.forward(u, codes)[0], x), log_q, -torch.inf)

    def quantize(self, x: Tensor) -> Batch:
        """Points (B, n, D) -> (codes (B, n),)."""
        return (self.cells.quantize(x),)

    @torch.no_grad()
    def arrange(self, codes: Tensor) -> None:
        """Cells that can be moved are put where a text (n,) suggests: characters between the same others are near."""
        if isinstance(self.cells, VoronoiCells) and self.cells.placement != "random":
            stride = max(1, len(codes) // NEIGHBOURHOODS)
            around = codes.unfold(0, 3, stride).long()  # before, this, after
            self.cells.move_to(profile_positions(around, self.cells.counts * 3, self.cells.dim)[1:2])

    def _told(self, codes: Tensor) -> Tensor | None:
        return None if self.context is None else self.context(codes)


@dataclass(frozen=True)
class CharacterNoise:
    """What is chosen about the noise of a `CharacterDequantizer`: a flow of each point, told the characters around."""

    blocks: int = 2
    """Conditional coupling blocks."""
    context: int = 32
    """Size of the embeddings of characters."""
    width: int = 128
    """Of the networks."""
    layers: int = 1
    """Of the network over both sides; 0: the noise knows its own character alone."""
    base: Literal["logistic", "gaussian"] = "logistic"
    """What the flow begins with."""
    spread: float = 0.25
    """At the start, of noise before it is mapped into fixed regions; learned ones have a spread of their own."""

    def build(self, cells: Cells, length: int, fast: bool) -> CharacterDequantizer:
        """The dequantizer of texts of at most so many characters."""
        context = CharacterContext(max(cells.counts), self.context, self.width, self.layers, length, fast)
        first = ContextAffine(zero(Linear(self.context, 2 * cells.dim)))
        rest = flat_couplings(cells.dim, self.blocks, self.width, 1, self.context, norm=False)
        noise = Flow(BASES[self.base]((cells.dim,)), Invert(Chain(first, *rest)))
        if not isinstance(cells, VoronoiCells):
            _gather(first, cells, self.spread)
        return CharacterDequantizer(cells, noise, context)


@torch.no_grad()
def _gather(affine: ContextAffine, cells: Cells, spread: float) -> None:
    """Noise around the middle of fixed regions, u_0 + spread e, instead of around 0."""
    code = torch.zeros(1, 1, dtype=torch.int64)
    middle = cells.inverse(cells.centre(code), code)[0].flatten()
    scale = torch.full_like(middle, spread).log()
    assert isinstance(affine.net, nn.Linear)
    affine.net.bias.copy_(torch.cat([scale, middle]))
