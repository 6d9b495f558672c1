"""The best tree of pairwise dependencies."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from tessella.baselines.base import Baseline, check_positive
from tessella.baselines.trees import maximum_spanning_tree, mutual_information, pair_counts

NO_KEY = torch.iinfo(torch.int64).max  # ends the list of keys, so that every search ends inside it
NOT_JOINED = -1.0  # weight of an edge that is not to be; information is never negative


class ChowLiu(Baseline):
    """P(c) = prod_j P(c_j | c_parent(j)),  P(b | a) = (n_ab + s P(b)) / (n_a + s).

    Of all trees, the one under which the training rows are most likely: the maximum spanning tree of the mutual
    information between columns. Conditionals fall back on the marginal P(b) where a was seen seldom, so every row has a
    positive probability. Only pairs that occur are stored; uniform until `fit`.

    Args:
        counts: number of categories of each variable.

    References:
        C. K. Chow and C. N. Liu, "Approximating discrete probability distributions with dependence trees", 1968.

    >>> rows = torch.tensor([[0, 1, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1]])  # the second is the first, turned around
    >>> model = ChowLiu((2, 2, 2)).fit(rows, smoothing=1e-6)
    >>> model.parent.tolist(), model.log_prob(rows[:1]).exp()
    ([-1, 0, 0], tensor([0.2500], dtype=torch.float64))
    """

    parent: Tensor
    order: Tensor
    number: Tensor
    log_table: Tensor
    keys: Tensor
    pairs: Tensor
    smoothing: Tensor

    def __init__(self, counts: Sequence[int]):
        super().__init__(counts, numbers_per_row=8 * len(counts))
        n = len(self.counts)
        self.register_buffer("parent", torch.full((n,), -1))
        self.register_buffer("order", torch.arange(n))  # parents first
        self.register_buffer("number", torch.zeros(sum(self.counts), dtype=torch.int64))  # n_a, flat
        self.register_buffer("log_table", self.uniform())  # log P(b), flat
        self.register_buffer("keys", torch.tensor([NO_KEY]))  # pairs (j, a, b) that occur, as numbers, sorted
        self.register_buffer("pairs", torch.zeros(1, dtype=torch.int64))  # n_ab of each
        self.register_buffer("smoothing", torch.ones((), dtype=torch.float64))

    def fit(
        self,
        codes: Tensor,
        smoothing: float = 1.0,
        largest_table: int | None = None,
        information: Tensor | None = None,
    ) -> Self:
        """Count pairs, find the tree, keep the counts along it.

        Args:
            codes: training rows, (B, N).
            smoothing: s, how many rows the marginal weighs in each conditional.
            largest_table: variables with more than so many pairs of categories are not joined, which can leave several
                trees: a column of names seems to tell everything about every other one, and only by chance.
            information: `mutual_information` of these rows, (N, N), where it is known already.
        """
        check_positive("smoothing", smoothing)
        self.log_table.copy_(self.log_frequencies(codes))
        codes = codes.long()  # keys are products of codes
        self.number.copy_(torch.bincount((codes + self.offset).flatten(), minlength=len(self.number)))
        self.smoothing.fill_(smoothing)
        weight = (mutual_information(codes, self.counts) if information is None else information).cpu()
        if largest_table is not None:
            pairs = self.count.cpu()[:, None] * self.count.cpu()
            weight = weight.where(pairs <= largest_table, NOT_JOINED)
        parent, order = maximum_spanning_tree(weight)
        joined = [above >= 0 and float(weight[j, above]) > NOT_JOINED for j, above in enumerate(parent)]
        self.parent.copy_(torch.tensor(parent).where(torch.tensor(joined), -1))
        self.order.copy_(torch.tensor(order))
        self._count_pairs(codes)
        return self

    def _count_pairs(self, codes: Tensor) -> None:
        keys, pairs = [], []
        for j, (parent, first) in enumerate(zip(self.parent.tolist(), self._first_key().tolist(), strict=True)):
            if parent >= 0:
                key, n = pair_counts(codes[:, parent], codes[:, j], self.counts[parent], self.counts[j])
                keys.append(first + key)
                pairs.append(n)
        self.keys = torch.cat([*keys, codes.new_tensor([NO_KEY])])
        self.pairs = torch.cat([*pairs, codes.new_zeros(1)])

    def _first_key(self) -> Tensor:
        """Variable j owns the keys first_j + a K_j + b, in the order of the variables; (N)."""
        used = torch.where(self.parent >= 0, self.count[self.parent] * self.count, 0)
        return used.cumsum(0) - used

    def _log_prob(self, codes: Tensor) -> Tensor:
        root, parent = self.parent < 0, self.parent.clamp_min(0)
        above = codes[:, parent]
        key = torch.where(root, -1, self._first_key() + above * self.count + codes)
        place = torch.searchsorted(self.keys, key)
        n_ab = torch.where(self.keys[place] == key, self.pairs[place], 0)
        n_a = torch.where(root, 0, self.number[above + self.offset[parent]])
        marginal = self.log_table[codes + self.offset].exp()
        return ((n_ab + self.smoothing * marginal).log() - (n_a + self.smoothing).log()).sum(-1)

    def _sample(self, rows: int) -> Tensor:
        codes = torch.zeros(rows, len(self.counts), dtype=torch.int64, device=self.keys.device)
        firsts = self._first_key()
        for j in self.order.tolist():
            drawn = torch.multinomial(self.log_table[self.segment(j)].exp(), rows, replacement=True)
            parent = int(self.parent[j])
            codes[:, j] = drawn if parent < 0 else self._below(j, codes[:, parent], parent, firsts[j], drawn)
        return codes

    def _below(self, j: int, above: Tensor, parent: int, first: Tensor, marginal: Tensor) -> Tensor:
        """One of the n_a training rows with this parent, or, s times in n_a + s, the draw from the marginal."""
        n_a = self.number[above + self.offset[parent]]
        ticket = (torch.rand(len(above), dtype=torch.float64, device=above.device) * (n_a + self.smoothing)).long()
        until = self.pairs.cumsum(0)
        start = torch.searchsorted(self.keys, first + above * self.counts[j])
        chosen = torch.searchsorted(until, until[start] - self.pairs[start] + ticket, right=True)
        from_rows = (self.keys[chosen.clamp_max(len(self.keys) - 1)] - first) % self.counts[j]
        return torch.where(ticket < n_a, from_rows, marginal)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        """How many pairs occur depends on the rows: make room for those that come."""
        for name in ("keys", "pairs"):
            if prefix + name in state_dict:
                setattr(self, name, getattr(self, name).new_empty(state_dict[prefix + name].shape))
        super()._load_from_state_dict(state_dict, prefix, *args)
