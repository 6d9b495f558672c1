"""A mixture of products of categoricals, as something that a network corrects."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tessella.nets.ragged import Mixed

QUICK = 16.0  # how much further than other weights logits move in a step: rows are told apart in hundreds of steps
SPREAD = 1.0  # of components at the start
FEWEST = -20.0  # log of a probability that is taken for 0


class Shares(NamedTuple):
    """What components say about parts, of all columns or some."""

    log_share: Tensor
    """log P_mj(k), (parts, M)."""
    prior: Tensor
    """log w_m, up to a number, (M)."""

    def mixed(self, evidence: Tensor) -> Mixed:
        """From the sums of log P_mj over what was told, (*batch, M)."""
        return Mixed((evidence + self.prior).softmax(-1), self.log_share.exp())


class Components(nn.Module):
    """log P_mj(k) = log softmax_k(16 a_mjk),  log w_m = 16 b_m, up to a number.

    What values told so far say about the component, log w_m + sum_j log P_mj(x_j), is a sum over columns in any order.
    With r its softmax, sum_m r_m P_mj(k) is what that says about another column.

    Args:
        counts: parts of each column.
        components: M.
    """

    def __init__(self, counts: Sequence[int], components: int):
        super().__init__()
        self.counts = list(counts)
        self.logit = nn.Parameter(torch.zeros(sum(counts), components))
        self.log_weight = nn.Parameter(torch.zeros(components))

    def forward(self, column: int | None = None) -> Shares:
        """Of the parts of all columns, or of one of them."""
        own = (QUICK * self.logit).split(self.counts)
        chosen = own if column is None else own[column : column + 1]
        return Shares(torch.cat([one.log_softmax(0) for one in chosen]), QUICK * self.log_weight)

    @torch.no_grad()
    def start(self, log_frequency: Tensor) -> None:
        """Each component somewhere around the frequencies of the parts, (parts)."""
        self.logit.copy_((log_frequency[:, None] + SPREAD * torch.randn_like(self.logit)) / QUICK)

    @torch.no_grad()
    def take(self, log_weight: Tensor, log_table: Tensor) -> None:
        """Begin as a mixture that was found before: its weights (M) and its tables (parts, M)."""
        self.logit.copy_(log_table.clamp_min(FEWEST) / QUICK)
        self.log_weight.copy_(log_weight.clamp_min(FEWEST) / QUICK)
