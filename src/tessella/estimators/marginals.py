"""Every column on its own: a crude law f(v) to propose values from and to weigh them with."""

from math import log, pi

import torch
from torch import Tensor

from tessella.data.tables.columns import Column
from tessella.data.tables.encoding import Encoding
from tessella.dequantizers.mixed import MixedDequantizer, MonotoneMap
from tessella.estimators.coded import CodedRows
from tessella.estimators.network import Model
from tessella.models import SemiDiscrete


class Marginals:
    """f(v) = training frequency of a category; of a number its law in the codes, or N(T(v)) T'(v) with a flow's map T.

    Args:
        model: which holds what is known about numbers.
        encoding: whose columns hold the frequencies.
    """

    def __init__(self, model: Model, encoding: Encoding):
        self.model, self.encoding, self.device = model, encoding, model.device

    @property
    def scale(self) -> MonotoneMap:
        """The maps of a flow's numbers."""
        assert isinstance(self.model, SemiDiscrete)
        assert isinstance(self.model.dequantizer, MixedDequantizer)
        return self.model.dequantizer.scale

    def draw(self, column: int, count: int) -> Tensor:
        """So many values of a column, as they stand in a row: (count, tokens of the column)."""
        spec, tokens = self.encoding.columns[column], self.encoding.tokens(column)
        codes = torch.multinomial(self._frequencies(spec), count, replacement=True).double()
        if not spec.number:
            return codes[:, None].to(self.device)
        if isinstance(self.model, CodedRows):
            law = self.model.codes.laws[self.encoding.numbers.index(column)]
            drawn = law.bins.draw(torch.multinomial(law.log_mass.exp(), count, replacement=True))
            kept = drawn.clamp(spec.low, spec.high).numpy()
            return torch.from_numpy(self.encoding.place(column, kept)).to(self.device)
        place = tokens[-1] - len(self.encoding.counts)
        z = torch.zeros(count, len(self.encoding.numbers), dtype=torch.float64, device=self.device)
        z[:, place] = torch.randn(count, dtype=torch.float64).to(self.device)
        value = self.scale.inverse(z)[:, place].clamp(spec.low, spec.high)
        value = value.floor() if self.encoding.unit[place] else value
        state = codes.to(self.device)
        return torch.stack([state, torch.where(state == 1, value, 0)], 1) if len(tokens) > 1 else value[:, None]

    def log_prob(self, column: int, rows: Tensor) -> Tensor:
        """log f of a column's values in rows (B, G + R): (B)."""
        spec, tokens = self.encoding.columns[column], self.encoding.tokens(column)
        shares = self._frequencies(spec).to(rows.device)
        log_shares = (shares / shares.sum()).log()
        if not spec.number:
            return log_shares[rows[:, tokens[0]].long()]
        place = tokens[-1] - len(self.encoding.counts)
        values = rows[:, len(self.encoding.counts) :] + 0.5 * self.encoding.unit[place]
        z, slope = (part[:, place] for part in self.scale.forward_and_ladj(values))
        log_density = slope - 0.5 * z.square() - 0.5 * log(2 * pi)
        if len(tokens) == 1:
            return log_density
        state = rows[:, tokens[0]].long()
        return log_shares[state] + torch.where(state == 1, log_density, 0)

    @staticmethod
    def _frequencies(spec: Column) -> Tensor:
        """Rows of each category, or of each state of a number; of none there is half a one, since models draw it."""
        frequencies = spec.state_frequencies if spec.number else spec.frequencies
        return torch.tensor(frequencies, dtype=torch.float64).clamp_min(0.5)
