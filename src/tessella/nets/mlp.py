"""Multilayer perceptron."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from tessella.nets.linear import Linear


class MLP(nn.Module):
    """x, context -> W_n silu( ... silu(W_1 [x, context])), with W_n = 0 at the start.

    Args:
        inputs: size of x.
        outputs: size of the result.
        width: size of each hidden layer.
        layers: number of hidden layers.
        context: size of the context vector that is appended to x; 0 for none.
    """

    def __init__(self, inputs: int, outputs: int, width: int, layers: int = 2, context: int = 0):
        super().__init__()
        sizes = [inputs + context, *[width] * layers]
        hidden = [module for a, b in pairwise(sizes) for module in (Linear(a, b), nn.SiLU())]
        self.body = nn.Sequential(*hidden)
        self.head = zero(Linear(sizes[-1], outputs))

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """(*batch, inputs), (*batch, context) -> (*batch, outputs)."""
        out: Tensor = self.head(self.body(x if context is None else torch.cat([x, context], -1)))
        return out


def zero(layer: Linear) -> Linear:
    """A linear layer that starts by returning 0."""
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
