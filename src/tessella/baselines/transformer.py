"""One variable after another."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.baselines.base import Baseline, check_at_least_one, draw
from tessella.nets import AttentionBlock


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
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout: got {dropout}; expected 0 <= dropout < 1")
        check_at_least_one(width=width, layers=layers)
        super().__init__(counts, numbers_per_row=len(counts) * (12 * width + 3 * max(counts, default=1)))
        self.embed = nn.Parameter(0.02 * torch.randn(sum(self.counts), width))
        self.place = nn.Parameter(0.02 * torch.randn(len(self.counts), width))
        self.blocks = nn.ModuleList(AttentionBlock(width, 4, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Parameter(torch.zeros(*self.present.shape, width))  # W, (N, K, width)
        self.bias = nn.Parameter(torch.zeros(self.present.shape))  # b, (N, K)

    def loss(self, batch: Tensor) -> Tensor:
        """Mean of -log P over a batch, the training objective."""
        return self.nll(batch).mean()

    @torch.no_grad()
    def initialize(self, batch: Tensor) -> None:
        """Start as the independent model of the batch: b = log marginals, while W = 0."""
        self.bias[self.present] = self.log_frequencies(batch).to(self.bias)

    def _hidden(self, before: Tensor) -> Tensor:
        """h_1, ..., h_(n+1) from the first n codes: (b, n) -> (b, n + 1, width)."""
        n = before.shape[1]
        tokens = functional.pad(self.embed[before + self.offset[:n]], (0, 0, 1, 0))  # nothing comes before the first
        h = tokens + self.place[: n + 1]
        for block in self.blocks:
            h = block(h, causal=True)
        return self.norm(h)

    def _log_prob(self, codes: Tensor) -> Tensor:
        logits = torch.einsum("bnw,nkw->bnk", self._hidden(codes[:, :-1]), self.head) + self.bias
        log_table = logits.masked_fill(~self.present, -torch.inf).log_softmax(-1)
        return log_table.gather(-1, codes[..., None]).squeeze(-1).sum(-1)

    def _sample(self, rows: int) -> Tensor:
        codes = torch.zeros(rows, 0, dtype=torch.int64, device=self.count.device)
        for j, count in enumerate(self.counts):
            logits = self._hidden(codes)[:, -1] @ self.head[j, :count].T + self.bias[j, :count]
            codes = torch.cat([codes, draw(logits)[:, None]], 1)
        return codes
