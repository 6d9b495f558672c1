"""One causal transformer for every order of the columns."""

from collections.abc import Iterator
from copy import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.nets.attention import AttentionBlock, Kept, Stack

EXPANSION = 2  # of the hidden layers; with 4 a step takes a fifth longer; on Covertype it learned less in the same time
NAMED = 0.02  # size of names at the start
SHARED = 4  # rows that go through the network as one, on average, while any do


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
        evidence: E, further numbers that a value comes with, which the network does not see: a state ends with their
            sums over all values before.
    """

    def __init__(
        self, columns: int, width: int, layers: int, dropout: float = 0.0, fast: bool = False, evidence: int = 0
    ):
        super().__init__()
        self.columns, self.width, self.evidence = columns, width, evidence
        self.source, self.asked = (nn.Parameter(NAMED * torch.randn(columns, width)) for _ in range(2))
        blocks = (AttentionBlock(width, EXPANSION, dropout) for _ in range(layers))
        self.blocks = Stack(blocks, causal=True, fast=fast)
        self.norm = nn.LayerNorm(width)

    def forward(self, values: Tensor, order: Tensor) -> Tensor:
        """States, in the order, (B, n, width + E).

        Args:
            values: of the columns in this order, the last of which nobody is told, (B, n, width + E).
            order: which columns, n of them or all, (B, n).
        """
        seen, evidence = values[:, :-1].split([self.width, self.evidence], -1)
        told = seen + functional.embedding(order[:, :-1], self.source)
        tokens = functional.pad(told, (0, 0, 1, 0)) + functional.embedding(order, self.asked)
        states: Tensor = self.norm(self.blocks(tokens)).to(values.dtype)
        if not self.evidence:
            return states
        return torch.cat([states, functional.pad(evidence, (0, 0, 1, 0)).cumsum(1)], -1)

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
        self.evidence = net.source.new_zeros(1, net.evidence)
        self.branch: Tensor | None = torch.zeros(rows, dtype=torch.int64, device=net.source.device)  # None: own ones
        self.kept = Kept(net.blocks, net.columns, 1)
        self.room: Kept | None = None
        self.parent: Tensor | None = None  # those of `kept` that go on, where they are not the ones that are told

    def ask(self, column: int) -> Tensor:
        """What is known about a column in every branch, (branches, width + E)."""
        state: Tensor = self.net.norm(self._after(column)).to(self.told.dtype)
        return torch.cat([state, self.evidence], -1) if self.net.evidence else state

    def spread(self, known: Tensor) -> Tensor:
        """What is known in every branch -> what is known about every row, (B, ...)."""
        return known if self.branch is None else known.index_select(0, self.branch)

    def skip(self, column: int) -> None:
        """Instead of `ask`, where the value of a column is known and nobody asks what was known before."""
        self._after(column, asked=False)

    def tell(self, column: int, values: Tensor, key: Tensor) -> None:
        """Its value, (B, width + E), once it was asked for or skipped, and a key that tells values apart, (B)."""
        seen, evidence = values.split([self.net.width, self.net.evidence], -1)
        told, evidence = seen + self.net.source[column], self.spread(self.evidence) + evidence
        first = slice(None) if self.branch is None else self._grow(self.branch, key)
        self.told, self.evidence = told[first], evidence[first]

    def split(self, rows: int) -> Iterator["Walk"]:
        """The same for so many rows at a time; one after another, since they share memory."""
        device, room = self.told.device, Kept(self.net.blocks, self.net.columns, min(rows, self.rows))
        parent = torch.arange(len(self.told), device=device) if self.parent is None else self.parent
        for own in torch.arange(self.rows, device=device).split(rows):
            part = copy(self)
            part.rows, part.room = len(own), room
            if self.branch is None:
                part.told, part.evidence, part.parent = self.told[own], self.evidence[own], parent[own]
            else:
                part.branch, part.parent = self.branch[own], parent
            yield part

    def _after(self, column: int, asked: bool = True) -> Tensor:
        if self.parent is not None:
            self.kept, self.parent = self.kept.branch(self.parent, self.room), None
        return self.net.blocks.after(self.told + self.net.asked[column], self.kept, asked)

    def _grow(self, parent: Tensor, key: Tensor) -> Tensor | slice:
        """New branches from those of the rows and keys; a row of each of them, or all."""
        value = key.unique(return_inverse=True)[1]
        pairs, branch = (self.rows * parent + value).unique(return_inverse=True)
        if SHARED * len(pairs) > self.rows:
            self.branch, self.parent = None, parent
            return slice(None)
        every = torch.arange(self.rows, device=key.device)
        self.branch, first = branch, torch.empty_like(pairs).scatter_(0, branch, every)
        self.parent = parent[first]
        return first
