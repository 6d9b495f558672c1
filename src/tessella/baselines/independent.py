"""Every variable on its own."""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from tessella.baselines.base import JEFFREYS, Baseline


class Independent(Baseline):
    """log P(c) = sum_j log P_j(c_j),  P_j(k) = (n_k + s) / (n + s K_j).

    What a table says if no variable tells anything about another; uniform until `fit`.

    Args:
        counts: number of categories of each variable.

    >>> rows = torch.tensor([[0, 2], [0, 1], [1, 2]])
    >>> Independent((2, 3)).fit(rows).log_prob(rows[:1]).exp()  # (2 + 1/2) / (3 + 1) * (2 + 1/2) / (3 + 3/2)
    tensor([0.3472], dtype=torch.float64)
    """

    log_table: Tensor

    def __init__(self, counts: Sequence[int]):
        super().__init__(counts, numbers_per_row=2 * len(counts))
        self.register_buffer("log_table", self.uniform())  # (sum K)

    def fit(self, codes: Tensor, smoothing: float = JEFFREYS) -> Self:
        """Count.

        Args:
            codes: training rows, (B, N).
            smoothing: s, rows that every category is given before counting. 1/2 is the choice of Jeffreys and of
                Krichevsky and Trofimov: its excess code length over the best table is within a constant of the least
                possible, whatever the table.
        """
        self.log_table.copy_(self.log_frequencies(codes, smoothing))
        return self

    def _log_prob(self, codes: Tensor) -> Tensor:
        return self.log_table[codes + self.offset].sum(-1)

    def _sample(self, rows: int) -> Tensor:
        tables = [self.log_table[self.segment(j)].exp() for j in range(len(self.counts))]
        return torch.stack([torch.multinomial(table, rows, replacement=True) for table in tables], -1)
