"""Rows that repeat: their counts, and a network for what counts do not say."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.contracts import Batch
from tessella.models.any_order import AutoregressiveTable

DISCOUNTS = 4  # rows that came once, twice, ..., and so often or more
SURE = 0.05  # share of a count, at least and at most, that is taken from it at the start
FACTOR = 0x1E3779B97F4A7C15  # odd: of the polynomial by which rows are looked up


class BackoffTable(nn.Module):
    """P(x) = (n(x) - d_n(x)) / n + (D / n) p(x),  n(x) of n training rows are x,  D = sum of all that is discounted.

    Tables of categories repeat themselves, and how often a row came says more about it than any network. But counts
    know nothing about rows that never came. So a discount d_c is taken from every row that came c times, and the sum D
    of them is given to the network: absolute discounting, with the first term 0 where n(x) = 0. The two parts add up
    to one, whatever the discounts, and they and the network are learned together. In training each row leaves itself
    out, n(x) - 1 of n - 1, so that they see what they will see: rows which may be new. `Trainable`, `Likelihood`.

    Where no row comes twice the model learns d_1 = 1, and is the network.

    Args:
        network: p, of categories.
        rows: different training rows, `start` finds them.
        own: share of the training objective that is -log p instead of -log P. Rows that came often are explained by
            their counts; without it the network would learn little from them.
    """

    exact = True
    seen: Tensor
    number: Tensor
    key: Tensor
    came: Tensor
    factor: Tensor

    def __init__(self, network: AutoregressiveTable, rows: int, own: float = 0.5):
        super().__init__()
        shape = network.density.shape
        if shape.numbers:
            raise ValueError(
                f"table: got {shape.numbers} columns of numbers; expected categories only, whose rows repeat"
            )
        if not 0 <= own < 1:
            raise ValueError(f"own: got {own}; expected a share, at least 0 and below 1")
        self.network, self.own = network, own
        self.logit = nn.Parameter(torch.zeros(DISCOUNTS))
        columns = len(shape.counts)
        for name, buffer in {
            "seen": torch.zeros(rows, columns, dtype=torch.int32),
            "number": torch.ones(rows, dtype=torch.int64),
            "key": torch.arange(rows),
            "came": torch.zeros(DISCOUNTS + 1, dtype=torch.int64),
        }.items():
            self.register_buffer(name, buffer)
        self.register_buffer("factor", torch.tensor(FACTOR).repeat(columns).cumprod(0), persistent=False)

    @torch.no_grad()
    def start(self, codes: Tensor) -> None:
        """Count these rows, and discount as much as one would by the counts alone (Chen and Goodman, 1999)."""
        seen, number = codes.to(self.seen).unique(dim=0, return_counts=True)
        key = self._key(seen)
        order = key.argsort()
        self.seen, self.number, self.key = seen[order], number[order], key[order]
        if not _ascending(self.key):
            raise ArithmeticError("codes: got two rows with one key; expected different keys of different rows")
        self.came = self._came()
        exactly = torch.bincount(self.number, minlength=DISCOUNTS + 2)[1 : DISCOUNTS + 2].double()
        often = torch.arange(1, DISCOUNTS + 1, device=codes.device)
        single = exactly[0] / (exactly[0] + 2 * exactly[1]).clamp_min(1)
        discount = often - (often + 1) * single * exactly[1:] / exactly[:-1].clamp_min(1)
        self.logit.copy_((discount / often).clamp(SURE, 1 - SURE).logit())

    def loss(self, codes: Tensor) -> Tensor:
        """Mean of -log P of training rows, each of which is left out of the counts, and of -log p."""
        log_p, left_out = self.network.drawn_log_prob(codes), torch.ones_like(codes[:, 0], dtype=torch.int64)
        return -torch.lerp(self._with_counts(codes, log_p, left_out), log_p, self.own).mean()

    def nll(self, codes: Tensor) -> Tensor:
        """-log P of every row, (B)."""
        return -self.log_prob(codes)

    def initialize(self, codes: Tensor) -> None:
        """The network's."""
        self.network.initialize(codes)

    def log_prob(self, codes: Tensor, samples: int | None = None) -> Tensor:
        """Exact log-likelihood of each row, (B). It needs no `samples`; bounds do."""
        return self._with_counts(codes, self.network.log_prob(codes), torch.zeros_like(codes[:, 0], dtype=torch.int64))

    @torch.no_grad()
    def sample(self, rows: int) -> Batch:
        """New rows: some of the training rows, and some of the network's, in random places."""
        (codes,) = self.network.sample(rows)
        kept = self.number - self._discount(self.number)
        share = kept.double().cumsum(0)
        drawn = self.number.sum() * torch.rand(rows, dtype=torch.float64, device=codes.device)
        place = torch.searchsorted(share, drawn, right=True)
        counted = place < len(share)
        return (torch.where(counted[:, None], self.seen[place.clamp_max(len(share) - 1)].long(), codes),)

    def count(self, codes: Tensor) -> Tensor:
        """n(x) of each row, (B)."""
        codes = codes.to(self.seen)
        place = torch.searchsorted(self.key, self._key(codes)).clamp_max(len(self.key) - 1)
        return torch.where((self.seen[place] == codes).all(1), self.number[place], 0)

    def check_tables(self) -> None:
        """Rows are of the table, different, and lie in the order of their keys; each came."""
        shape = self.network.density.shape
        most = torch.tensor(shape.counts, device=self.seen.device)
        if not ((self.seen >= 0) & (self.seen < most)).all():
            raise ValueError("seen: got rows with other codes; expected rows of the table")
        if not (torch.equal(self.key, self._key(self.seen)) and _ascending(self.key)):
            raise ValueError("key: got keys of other rows; expected those of `seen`, in ascending order")
        if not ((self.number > 0).all() and torch.equal(self.came, self._came())):
            raise ValueError("number: got numbers that `came` does not count; expected how often each row came")

    def _with_counts(self, codes: Tensor, log_p: Tensor, less: Tensor) -> Tensor:
        """log P from log p, (B), where `less` of the rows like this one, 0 or 1, are not counted."""
        before = self.count(codes)
        number = before - less
        rest = (self.came * self._discounts()).sum() - self._discount(before) + self._discount(number)
        kept = torch.where(number > 0, number - self._discount(number), 1).log()
        log_kept = torch.where(number > 0, kept, -torch.inf)
        return torch.logaddexp(log_kept, rest.log() + log_p) - (self.number.sum() - less).log()

    def _discounts(self) -> Tensor:
        """d_0 = 0, and d_c of rows that came c times, or the last so often or more, 0 < d_c < c: (`DISCOUNTS` + 1)."""
        return torch.arange(DISCOUNTS + 1, device=self.logit.device) * functional.pad(self.logit, (1, 0)).sigmoid()

    def _discount(self, number: Tensor) -> Tensor:
        """Of rows that came so often, (B)."""
        return self._discounts()[number.clamp_max(DISCOUNTS)]

    def _came(self) -> Tensor:
        """Different rows that came 0, 1, 2, ... times, the last so often or more."""
        return torch.bincount(self.number.clamp_max(DISCOUNTS), minlength=DISCOUNTS + 1)

    def _key(self, codes: Tensor) -> Tensor:
        """A number for each row, almost surely another for another: sum_j (c_j + 1) a^j modulo 2^64."""
        return ((codes.long() + 1) * self.factor).sum(1)


def _ascending(keys: Tensor) -> bool:
    """Whether each is larger than the one before. Their differences may be too large for an integer."""
    return bool((keys[1:] > keys[:-1]).all())
