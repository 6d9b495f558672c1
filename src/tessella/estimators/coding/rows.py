"""Rows of a table by models that score codes exactly: no cells, no bound, no noise."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tessella.baselines import BlockAutoregressiveMixture, CategoricalMixture
from tessella.contracts import Batch
from tessella.estimators.coding.codes import Codes
from tessella.progress import counted

ROWS_AT_ONCE = 2000  # between two signs of life


class CodedRows(nn.Module):
    """log p(row) = log P(codes) + log p(numbers | codes), exact, for the batches of an `Encoding`: a `Likelihood`.

    Inside its code a number is independent of everything else, so rows given numbers are rows given their codes.

    Args:
        codes: of the rows; categories as they are, a range or a repeated value for a number.
        model: of the codes.
    """

    exact = True

    def __init__(self, codes: Codes, model: BlockAutoregressiveMixture | CategoricalMixture):
        super().__init__()
        self.codes, self.model = codes, model

    @property
    def device(self) -> torch.device:
        """Where the tables are."""
        return self.model.count.device

    @property
    def components(self) -> int:
        """Of the mixture; of that of each group."""
        mixture = self.model if isinstance(self.model, CategoricalMixture) else self.model.mixture
        return mixture.components

    def log_prob(self, *batch: Tensor, samples: int | None = None) -> Tensor:
        """Log-likelihood of each row, (B); `samples` changes nothing."""
        parts = list(zip(*(part.cpu().split(ROWS_AT_ONCE) for part in batch), strict=True))
        return torch.cat([self._log_prob(*part) for part in counted(parts)])

    def _log_prob(self, *batch: Tensor) -> Tensor:
        log_prob = self.model.log_prob(self.codes.codes(*batch).to(self.device)).double()
        return log_prob + self.codes.log_spread(*batch).to(self.device)

    def sample(self, rows: int) -> Batch:
        """New rows, on the CPU."""
        places = torch.arange(rows).split(ROWS_AT_ONCE)
        parts = [self.codes.draw(self.model.sample(len(part))[0].cpu()) for part in counted(places)]
        return tuple(torch.cat(column) for column in zip(*parts, strict=True))

    def positions(self, variable: int) -> Tensor:
        """Where the categories of a variable lie: what the network is told about each, or P(component | category)."""
        here = self.model.segment(variable)
        if isinstance(self.model, BlockAutoregressiveMixture):
            return self.model.embed[here].detach()
        return (self.model.log_table[here] + self.model.log_weight).softmax(-1)

    def codes_of(self, given: Mapping[int, list[float]]) -> dict[int, int]:
        """The codes, by variable, of columns whose values stand so in a row."""
        encoding = self.codes.encoding
        row = torch.zeros(1, encoding.shape.variables, dtype=torch.float64)
        for column, values in given.items():
            row[0, encoding.tokens(column)] = torch.tensor(values, dtype=torch.float64)
        code = self.codes.codes(*encoding.split(row))[0].tolist()
        return {variable: code[variable] for variable in map(self.codes.variable, given)}

    def rows_of(self, codes: Tensor, given: Mapping[int, list[float]]) -> Tensor:
        """Rows of these codes, (B, G + R); given columns, whose codes are among them, have their values."""
        encoding = self.codes.encoding
        rows = encoding.join(*self.codes.draw(codes.cpu()))
        for column, values in given.items():
            rows[:, encoding.tokens(column)] = torch.tensor(values, dtype=torch.float64)
        return rows


class CodedTraining(nn.Module):
    """-log p(row) = -log P(codes) - log p(numbers | codes), of rows that are coded once and for all: `Trainable`.

    The second term does not change: a batch is the codes, (B, N), and `Codes.log_spread`, (B).

    Args:
        model: of the codes.
    """

    def __init__(self, model: BlockAutoregressiveMixture):
        super().__init__()
        self.model = model

    def loss(self, codes: Tensor, log_spread: Tensor) -> Tensor:
        """Mean of -log p over a batch."""
        return self.nll(codes, log_spread).mean()

    def nll(self, codes: Tensor, log_spread: Tensor) -> Tensor:
        """-log p of each row, (B)."""
        return -self.model.log_prob(codes) - log_spread.to(self.model.embed)

    @torch.no_grad()
    def initialize(self, codes: Tensor, log_spread: Tensor) -> None:
        """As the model does, where it did not start from more rows before."""
        self.model.initialize(codes)
