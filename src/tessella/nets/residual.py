"""Multilayer perceptron with shortcuts: deep networks that train as easily as shallow ones."""

import torch
from torch import Tensor, nn

from tessella.nets.linear import Linear
from tessella.nets.mlp import zero


class ResidualMLP(nn.Module):
    """x, context -> W silu(h_n),  h_i = h_(i-1) + A_i silu(B_i silu(h_(i-1))),  h_0 = E [x, context], with W = 0 first.

    Args:
        inputs: size of x.
        outputs: size of the result.
        width: size of the states h_i.
        layers: n, blocks of two linear maps each.
        context: size of the context vector that is appended to x; 0 for none.
        dropout: share of what each block adds that is left out in training.

    >>> ResidualMLP(2, 3, width=8, context=4)(torch.randn(5, 2), torch.randn(5, 4)).abs().max().item()
    0.0
    """

    def __init__(self, inputs: int, outputs: int, width: int, layers: int = 2, context: int = 0, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.embed = Linear(inputs + context, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.SiLU(), Linear(width, width), nn.SiLU(), Linear(width, width)) for _ in range(layers)
        )
        self.head = nn.Sequential(nn.SiLU(), zero(Linear(width, outputs)))

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """(*batch, inputs), (*batch, context) -> (*batch, outputs)."""
        h = self.embed(x if context is None else torch.cat([x, context], -1))
        for block in self.blocks:
            h = h + self.dropout(block(h))
        out: Tensor = self.head(h)
        return out
