"""Several networks that learned the same rows, each from other random weights: the mean of their distributions."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tessella.contracts import Batch
from tessella.models.any_order import AutoregressiveTable
from tessella.models.bound import log_mean_exp


class EnsembleTable(nn.Module):
    """log P(row) = log 1/M sum_m p_m(row): exact, as the mean of distributions is a distribution.

    What one network learned by heart another did not, and the logarithm of a mean is at least the mean of logarithms:
    a row costs no more nats than it costs the members on average. They learn side by side, and do not know of each
    other. `Trainable`, `Likelihood`.

    Args:
        members: p_m of the rows of one table.
    """

    exact = True

    def __init__(self, members: Sequence[AutoregressiveTable]):
        super().__init__()
        if not members:
            raise ValueError("members: got none; expected at least 1")
        self.members = nn.ModuleList(members)

    def loss(self, *batch: Tensor) -> Tensor:
        """Mean of the members' losses."""
        return torch.stack([member.loss(*batch) for member in self._members]).mean()

    def nll(self, *batch: Tensor) -> Tensor:
        """-log P of every row, (B)."""
        return -self.log_prob(*batch)

    def initialize(self, *batch: Tensor) -> None:
        """The members'."""
        for member in self._members:
            member.initialize(*batch)

    def log_prob(self, *batch: Tensor, samples: int | None = None) -> Tensor:
        """Exact log-likelihood of each row, (B). It needs no `samples`; bounds do."""
        return log_mean_exp(torch.stack([member.log_prob(*batch) for member in self._members]))

    @torch.no_grad()
    def sample(self, rows: int) -> Batch:
        """New rows, each of one member, in random places."""
        number = torch.multinomial(torch.ones(len(self._members)), rows, replacement=True).bincount(
            minlength=len(self._members)
        )
        drawn = [member.sample(int(n)) for member, n in zip(self._members, number, strict=True) if n]
        place = torch.randperm(rows, device=drawn[0][0].device)
        return tuple(torch.cat(parts)[place] for parts in zip(*drawn, strict=True))

    @property
    def _members(self) -> list[AutoregressiveTable]:
        return [member for member in self.members if isinstance(member, AutoregressiveTable)]
