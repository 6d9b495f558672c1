"""One variable after another."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.baselines.base import Baseline, check_at_least_one, draw
from tessella.nets import AttentionBlock, RaggedLogits, Stack
from tessella.nets.ragged import ragged_cells


class CausalTransformer(Baseline):
    """log P(c) = sum_j log softmax(W_j h_j + b_j)[c_j],  h_j = transformer(c_1, ..., c_(j-1)), in the table's order.

    One pass gives the likelihood of a row; sampling takes a pass for each variable. `Trainable`.

    Args:
        counts: number of categories of each variable.
        width: size of the residual stream; heads of 32 dimensions where it divides.
        layers: number of attention + MLP blocks.
        dropout: share of what each block adds that is left out in training; for small tables.

    References:
        A. Vaswani et al., "Attention is all you need", 2017.
    """

    def __init__(self, counts: Sequence[int], width: int, layers: int, dropout: float = 0.0):
        check_at_least_one(width=width, layers=layers)
        super().__init__(counts, numbers_per_row=12 * len(counts) * width + 3 * ragged_cells(counts))
        self.embed = nn.Parameter(0.02 * torch.randn(sum(self.counts), width))
        self.place = nn.Parameter(0.02 * torch.randn(len(self.counts), width))
        self.blocks = Stack((AttentionBlock(width, 4, dropout) for _ in range(layers)), causal=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Parameter(torch.zeros(sum(self.counts), width))  # W, flat
        self.bias = nn.Parameter(torch.zeros(sum(self.counts)))  # b, flat
        self.logits = RaggedLogits(self.counts)

    def loss(self, batch: Tensor) -> Tensor:
        """Mean of -log P over a batch, the training objective."""
        return self.nll(batch).mean()

    @torch.no_grad()
    def initialize(self, batch: Tensor) -> None:
        """Start as the independent model of the batch: b = log marginals, while W = 0."""
        self.bias.copy_(self.log_frequencies(batch))

    def _hidden(self, before: Tensor) -> Tensor:
        """h_1, ..., h_(n+1) from the first n codes: (b, n) -> (b, n + 1, width)."""
        n = before.shape[1]
        tokens = functional.pad(self.embed[before + self.offset[:n]], (0, 0, 1, 0))  # nothing comes before the first
        h: Tensor = self.norm(self.blocks(tokens + self.place[: n + 1]))
        return h

    def _log_prob(self, codes: Tensor) -> Tensor:
        log_prob: Tensor = self.logits(self._hidden(codes[:, :-1]), self.head, self.bias, codes)
        return log_prob.sum(-1)

    def _sample(self, rows: int) -> Tensor:
        codes = torch.zeros(rows, 0, dtype=torch.int64, device=self.count.device)
        for j in range(len(self.counts)):
            own = self.segment(j)
            logits = self._hidden(codes)[:, -1] @ self.head[own].T + self.bias[own]
            codes = torch.cat([codes, draw(logits)[:, None]], 1)
        return codes
