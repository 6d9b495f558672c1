"""Rows of a mixture of categoricals whose columns become known one after another: the same questions as `RowWalk`."""

from collections.abc import Sequence
from math import inf

import numpy as np
import torch
from torch import Tensor

from tessella.baselines import CategoricalMixture
from tessella.contracts import Batch
from tessella.data.tables.bins import NumberDistribution
from tessella.data.tables.limits import Limit
from tessella.densities.surprises import excess
from tessella.estimators.coding import CodedRows
from tessella.nets.ragged import entropy

EVERYTHING = Limit(torch.ones(1, 1), torch.tensor([-inf]).double(), torch.tensor([inf]).double())
TINY = 1e-300  # where a limit leaves nothing anything is drawn, whose weight is 0


class MixtureWalk:
    """P(c_j | told) = sum_m P(m | told) P_mj(c_j), and inside the code of a number the number as in its column alone.

    Args:
        model: a mixture of the codes of rows.
        batch: rows; what they say about columns that are drawn makes no difference.
    """

    def __init__(self, model: CodedRows, *batch: Tensor):
        assert isinstance(model.model, CategoricalMixture)
        self.mixture, self.coding, self.encoding = model.model, model.codes, model.codes.encoding
        self.rows = self.encoding.join(*batch).cpu()
        self.codes = self.coding.codes(*self.encoding.split(self.rows))  # (B, N)
        self.joint = self.mixture.log_weight.cpu().expand(len(self.rows), -1)  # (B, M)
        self.table = self.joint

    @property
    def batch(self) -> Batch:
        """The rows as they are now."""
        return self.encoding.split(self.rows)

    def ask(self, column: int) -> Tensor:
        """log P of every code of a column, (B, K)."""
        self.table = (self.joint.softmax(-1) @ self._tables(column).exp().T).log().log_softmax(-1)
        return self.table

    def tell(self, column: int) -> None:
        """What the rows say about the column that was asked for."""
        self.joint = self.joint + self._tables(column)[self.codes[:, column]]

    def know(self, column: int) -> None:
        """What the rows say about a column that nobody has to be asked about."""
        self.tell(column)

    def log_prob(self, column: int) -> Tensor:
        """log p of what the rows say about the column that was asked for, (B)."""
        code = self.codes[:, column]
        log_prob = self.table.gather(1, code[:, None])[:, 0]
        if column < self.coding.categories:
            return log_prob
        distribution, member = self._number(column)
        mass = (member.to(distribution.log_mass) @ distribution.log_mass.exp()).log()
        return log_prob + distribution.log_prob(self._values(column)) - mass[code]

    def excess(self, column: int) -> Tensor:
        """How much more that surprises than values of the column do on average, (B); see `excess_surprise`."""
        if column < self.coding.categories:
            return -self.log_prob(column) - entropy(self.table)
        distribution, member = self._number(column)
        group, mass = member.long().argmax(0), distribution.log_mass
        inside = mass - (member.to(mass) @ mass.exp()).log()[group]  # log P(part | its code)
        part = distribution.bins.codes(self._values(column))
        bins, table = distribution.bins, self.table[:, group] + inside
        return excess(self.log_prob(column), table, part, bins.mean_log_spread, bins.dense)

    def within(self, column: int, limit: Limit) -> Tensor:
        """log of the share of every code that meets a limit, (B, K) or, where it is the same for all rows, (1, K)."""
        if column < self.coding.categories:
            return limit.allowed.to(self.table).log()
        distribution, member = self._number(column)
        mass, inside = distribution.log_mass.exp(), _shares(distribution, limit)
        groups = member.to(mass).T
        return ((mass * inside) @ groups / (mass @ groups)).log()

    def draw(self, column: int, part: Tensor, limit: Limit | None = None) -> None:
        """Write a value of these codes (B) of the column that was asked for into the rows, inside a limit."""
        self.codes[:, column] = part
        place = self._place(column)
        if column < self.coding.categories:
            self.rows[:, self.encoding.tokens(place)] = part[:, None].double()
            return
        distribution, member = self._number(column)
        chosen = limit or EVERYTHING
        share = _shares(distribution, chosen).expand(len(part), -1)
        own = torch.multinomial(distribution.log_mass.exp() * share * member[part] + TINY, 1)[:, 0]
        ranges = distribution.bins.ranges(chosen.low, chosen.high).expand(len(part), -1, -1)
        first, last = ranges[torch.arange(len(part)), own].unbind(-1)
        t = first + (last - first) * torch.rand(len(part), dtype=torch.float64)
        value = torch.minimum(torch.maximum(distribution.bins.at(own, t), chosen.low), chosen.high)
        self.rows[:, self.encoding.tokens(place)] = torch.from_numpy(self.encoding.place(place, value.numpy()))

    def put(self, tokens: Sequence[int], values: Tensor) -> None:
        """Write a column into the rows as it stands there, (B, tokens)."""
        self.rows[:, list(tokens)] = values
        self.codes = self.coding.codes(*self.batch)

    def _tables(self, column: int) -> Tensor:
        """log P_mj(k), (K, M)."""
        return self.mixture.log_table[self.mixture.segment(column)].cpu()

    def _number(self, column: int) -> tuple[NumberDistribution, Tensor]:
        """The distribution of a number alone, and which of its parts are in each code, (K, parts)."""
        number = column - self.coding.categories
        group = self.coding.groups[number]
        return self.coding.distributions[number], group == torch.arange(self.coding.counts[column])[:, None]

    def _values(self, column: int) -> Tensor:
        """What the rows say about a number, (B)."""
        return torch.from_numpy(np.ascontiguousarray(self.encoding.values(self._place(column), self.rows.numpy())))

    def _place(self, column: int) -> int:
        """Which column of the table it is."""
        first = self.coding.categories
        return self.encoding.categorical[column] if column < first else self.encoding.numbers[column - first]


def _shares(distribution: NumberDistribution, limit: Limit) -> Tensor:
    """How much of every part meets a limit, (B, parts)."""
    ranges = distribution.bins.ranges(limit.low, limit.high)
    share = ranges[..., 1] - ranges[..., 0]
    if distribution.bins.missing:
        share[:, -1] = limit.allowed[:, 0].to(share)
    return share
