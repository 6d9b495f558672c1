"""Tables of categories alone, by models that score codes exactly: no cells, no bound, no noise."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tessella.baselines import BlockAutoregressiveMixture, CategoricalMixture


class CategoricalRows(nn.Module):
    """log P(row) of rows (B, G) in double precision, as an `Encoding` without numbers makes them; exact.

    Args:
        model: of their codes. With one that can be trained this can be trained, too.
    """

    exact = True

    def __init__(self, model: BlockAutoregressiveMixture | CategoricalMixture):
        super().__init__()
        self.model = model

    @property
    def device(self) -> torch.device:
        """Where the tables are."""
        return self.model.count.device

    @property
    def components(self) -> int:
        """Of the mixture; of that of each group."""
        mixture = self.model if isinstance(self.model, CategoricalMixture) else self.model.mixture
        return mixture.components

    @property
    def conditions_exactly(self) -> bool:
        """Whether all weights of `propose` are the same, whatever is given."""
        return isinstance(self.model, CategoricalMixture)

    def log_prob(self, rows: Tensor, samples: int | None = None) -> Tensor:
        """log P of each row, (B); `samples` changes nothing."""
        return self.model.log_prob(rows.long())

    def sample(self, rows: int) -> Tensor:
        """New rows, (rows, G)."""
        return self.model.sample(rows).double()

    def propose(self, rows: int, given: Mapping[int, float]) -> tuple[Tensor, Tensor]:
        """Rows with these values at these places, (rows, G), and log w, (rows), whose mean of w is P(given)."""
        codes, log_weight = self.model.propose(rows, {place: int(code) for place, code in given.items()})
        return codes.double(), log_weight.double()

    def positions(self, variable: int) -> Tensor:
        """Where the categories of a variable lie: what the network is told about each, or P(component | category)."""
        here = self.model.segment(variable)
        if isinstance(self.model, BlockAutoregressiveMixture):
            return self.model.embed[here].detach()
        return (self.model.log_table[here] + self.model.log_weight).softmax(-1)

    def loss(self, batch: Tensor) -> Tensor:
        """Mean of -log P over a batch."""
        return self.nll(batch).mean()

    def nll(self, batch: Tensor) -> Tensor:
        """-log P of each row, (B)."""
        return -self.log_prob(batch)

    def initialize(self, batch: Tensor) -> None:
        """Nothing: it starts from all training rows before."""
