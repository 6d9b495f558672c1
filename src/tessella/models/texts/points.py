"""A density of sequences of points: each given those before it."""

from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.densities import Density
from tessella.models.texts.logistics import ConditionalLogistics
from tessella.models.texts.walking import Walk
from tessella.nets import CausalNet

EMBEDDED = 0.02  # size of embeddings at the start


class CausalPoints(Density):
    """p(x_1, ..., x_T) = prod_t p(x_t | h_t),  h_t = net(v_1, ..., v_(t-1)),  v = e_k + r A (x - x_k).

    k is the cell of x. The network is told the points. Which cell a point lies in, and how far from its middle, are
    functions of it, so it may be told those: an embedding of the cell, exactly, and the displacement.

    Args:
        length: T.
        net: of the states.
        conditional: p(x_t | h_t), with the cells of the dequantizer.
        displacement: r; small where noise in a cell has nothing to say.
    """

    def __init__(self, length: int, net: CausalNet, conditional: ConditionalLogistics, displacement: float = 1.0):
        super().__init__()
        cells = conditional.cells
        self.event_shape = (length, cells.dim)
        self.length, self.net, self.conditional, self.displacement = length, net, conditional, displacement
        self.embed = nn.Parameter(EMBEDDED * torch.randn(max(cells.counts), net.width))
        self.inside = nn.Parameter(EMBEDDED * torch.randn(net.width, cells.dim))
        self.first = nn.Parameter(EMBEDDED * torch.randn(net.width))  # the token before the first point

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        before = torch.cat([self.first.expand(len(x), 1, -1), self.embedded(x[:, :-1])], 1)
        return self.conditional.log_prob(x, self.net(before)).sum(-1)

    @torch.no_grad()
    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        walk = Walk(self, prod(shape))
        drawn = torch.stack([walk.draw() for _ in range(self.length)], 1)
        return drawn.view(*shape, *self.event_shape)

    @torch.no_grad()
    def initialize(self, x: Tensor, context: Tensor | None = None) -> None:
        """A component for each character, where the points of its cell lie, as often as it comes."""
        self.conditional.start(x.flatten(0, 1), self.conditional.cells.quantize(x).flatten())

    def embedded(self, values: Tensor) -> Tensor:
        """Points (B, n, D) as tokens, (B, n, width)."""
        cells = self.conditional.cells
        with torch.no_grad():
            code = cells.quantize(values)
        displaced = self.displacement * (values - cells.centre(code).to(values.dtype))
        return functional.embedding(code, self.embed) + functional.linear(displaced, self.inside)

    def draw(self, state: Tensor, temperature: float = 1.0) -> Tensor:
        """The next point of each row, given its state (B, width): (B, D)."""
        return self.conditional.draw(state, temperature)
