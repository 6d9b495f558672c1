"""How many items a set has."""

import torch
from torch import Tensor, nn

from tessella.data.itemsets.shape import SetShape

PSEUDO_SETS = 0.5


class SetSizes(nn.Module):
    """P(n) = (m_n + 1/2) / sum_i (m_i + 1/2), least <= n <= most: shares of the sizes of training sets.

    Of sets that all have one size it is 1, and costs nothing.

    Args:
        shape: which sizes there are; uniform until `start`.

    >>> sizes = SetSizes(SetShape(items=9, least=1, most=2))
    >>> sizes.start(torch.tensor([[True, True], [True, False], [True, True]]))
    >>> sizes.log_prob(torch.tensor([[True, False]])).exp()  # 1.5 / 4
    tensor([0.3750], dtype=torch.float64)
    """

    log_share: Tensor

    def __init__(self, shape: SetShape):
        super().__init__()
        self.shape = shape
        self.register_buffer("log_share", torch.zeros(shape.most + 1, dtype=torch.float64))
        self.start(torch.zeros(0, shape.most, dtype=torch.bool))

    @torch.no_grad()
    def start(self, mask: Tensor) -> None:
        """Count the sizes of sets, (B, n) each."""
        seen = torch.bincount(mask.sum(1), minlength=self.shape.most + 1).double()[: self.shape.most + 1]
        possible = torch.arange(self.shape.most + 1, device=mask.device) >= self.shape.least
        share = torch.where(possible, seen + PSEUDO_SETS, 0)
        self.log_share.copy_(share.log() - share.sum().log())

    def log_prob(self, mask: Tensor) -> Tensor:
        """log P(n), (B, n) -> (B)."""
        return self.log_share[mask.sum(1)]

    @torch.no_grad()
    def sample(self, sets: int) -> Tensor:
        """Sizes, (sets,)."""
        return torch.multinomial(self.log_share.exp(), sets, replacement=True)


def mask_of(sizes: Tensor, most: int) -> Tensor:
    """Which of `most` places hold an item, (B, most)."""
    return torch.arange(most, device=sizes.device) < sizes[:, None]


def log_orders(mask: Tensor) -> Tensor:
    """log n!, (B)."""
    return (mask.sum(1) + 1).to(torch.float64).lgamma()
