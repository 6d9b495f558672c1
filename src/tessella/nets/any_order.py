"""One causal transformer for every order of the columns."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.nets.attention import AttentionBlock, Kept, Stack

EXPANSION = 2  # of the hidden layers; with 4 a step takes a fifth longer; on Covertype it learned less in the same time
NAMED = 0.02  # size of names at the start
SHARED = 2  # rows that go through the network as one, on average, while any do


class AnyOrder(nn.Module):
    """h_t = norm blocks(v_s(t-1) + source_s(t-1) + asked_s(t))_t: what is known before column s(t) of the order s.

    A token says what the value before was, which column it came from, and which column is asked for next; attention is
    causal. So one pass gives the states of a whole row in any order, and each row of a batch may have its own.

    Args:
        columns: N.
        width: size of the residual stream; heads of 32 dimensions where it divides.
        layers: number of attention + MLP blocks.
        dropout: share of what each block adds that is left out in training; for small tables.
        fast: see `Transformer`.
    """

    def __init__(self, columns: int, width: int, layers: int, dropout: float = 0.0, fast: bool = False):
        super().__init__()
        self.columns, self.width = columns, width
        self.source, self.asked = (nn.Parameter(NAMED * torch.randn(columns, width)) for _ in range(2))
        blocks = (AttentionBlock(width, EXPANSION, dropout) for _ in range(layers))
        self.blocks = Stack(blocks, causal=True, fast=fast)
        self.norm = nn.LayerNorm(width)

    def forward(self, values: Tensor, order: Tensor) -> Tensor:
        """States, in the order.

        Args:
            values: of the columns in this order, the last of which nobody is told, (B, n, width).
            order: which columns, n of them or all, (B, n).
        """
        told = values[:, :-1] + functional.embedding(order[:, :-1], self.source)
        tokens = functional.pad(told, (0, 0, 1, 0)) + functional.embedding(order, self.asked)
        states: Tensor = self.norm(self.blocks(tokens)).to(values.dtype)
        return states

    def walk(self, rows: int) -> "Walk":
        """The same, column after column, for values that become known on the way; one order for all rows."""
        return Walk(self, rows)


class Walk:
    """The state of one column after another, each token once through the network: keys and values are kept.

    Rows that were told the same so far are one branch of a tree: before the first column all of them, and as long as
    few values, or values that all rows share, were told. When branches become many, each row goes on alone.

    Args:
        net: of the states.
        rows: B.
    """

    def __init__(self, net: AnyOrder, rows: int):
        self.net, self.rows = net, rows
        self.told = net.source.new_zeros(1, net.width)
        self.branch: Tensor | None = torch.zeros(rows, dtype=torch.int64, device=net.source.device)  # None: own ones
        self.kept = Kept(net.blocks, net.columns, rows)

    def ask(self, column: int) -> Tensor:
        """What is known about a column, (B, width)."""
        h = self.net.blocks.after(self.told + self.net.asked[column], self.kept)
        state: Tensor = self.net.norm(h).to(self.told.dtype)
        return state if self.branch is None else state.index_select(0, self.branch)

    def skip(self, column: int) -> None:
        """Instead of `ask`, where the value of a column is known and nobody asks what was known before."""
        self.net.blocks.after(self.told + self.net.asked[column], self.kept, asked=False)

    def tell(self, column: int, values: Tensor, key: Tensor) -> None:
        """Its value, (B, width), once it was asked for or skipped, and a key that tells values apart, (B)."""
        told = values + self.net.source[column]
        self.told = told if self.branch is None else told.index_select(0, self._grow(self.branch, key))

    def _grow(self, parent: Tensor, key: Tensor) -> Tensor:
        """New branches from those of the rows and keys; for each of them one of its rows."""
        value = key.unique(return_inverse=True)[1]
        pairs, branch = (self.rows * parent + value).unique(return_inverse=True)
        every = torch.arange(self.rows, device=key.device)
        if SHARED * len(pairs) > self.rows:
            self.branch = None
            self.kept.branch(parent)
            return every
        self.branch, first = branch, torch.empty_like(pairs).scatter_(0, branch, every)
        self.kept.branch(parent[first])
        return first
