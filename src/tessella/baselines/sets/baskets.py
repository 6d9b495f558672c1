"""Baskets of any size among very many items: a mixture that is exact, and learned by counting."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.baselines.base import check_at_least_one
from tessella.contracts import Batch
from tessella.data.itemsets.shape import SetShape
from tessella.densities.sets.sizes import mask_of
from tessella.densities.sets.symmetric import draw_distinct, log_symmetric

WEIGHTS_AT_ONCE = 2**20  # of components, whose polynomials are multiplied together
ROUNDING = 1e-6
NUMBERS_AT_ONCE = 2**23  # items of sets times components


class BasketMixture(nn.Module):
    """P(S) = sum_m v_m P_m(n) prod_{k in S} w_m(k) / e_n(w_m): the kind of basket, its size, its items, none twice.

    With one component, items are independent given their number. It is learned by expectation and maximisation, which
    touches only items that are there. Each kind is drawn towards the whole: it counts as if it had seen `prior` more
    baskets of all kinds.

    Args:
        shape: K items, sets of least to most of them.
        components: M.
    """

    exact = True
    log_kind: Tensor
    log_size: Tensor
    log_weight: Tensor

    def __init__(self, shape: SetShape, components: int = 1):
        super().__init__()
        check_at_least_one(components=components)
        self.shape = shape
        kinds = torch.full((components,), 1.0, dtype=torch.float64)
        possible = torch.arange(shape.most + 1) >= shape.least
        sizes = torch.where(possible, 1.0, 0.0).double().expand(components, -1)
        self.register_buffer("log_kind", kinds.log() - kinds.sum().log())
        self.register_buffer("log_size", (sizes / sizes.sum(1, keepdim=True)).log())
        self.register_buffer("log_weight", torch.zeros(components, shape.items, dtype=torch.float64))
        self._totals: Tensor | None = None

    @property
    def components(self) -> int:
        """M."""
        return len(self.log_kind)

    @property
    def log_total(self) -> Tensor:
        """log e_n(w_m), (M, most + 1)."""
        if self._totals is None or self._totals.device != self.log_weight.device:
            self._totals = torch.cat([log_symmetric(part, self.shape.most) for part in self.pieces()])
        return self._totals

    @property
    def log_factor(self) -> Tensor:
        """log v_m P_m(n) / e_n(w_m), (M, most + 1)."""
        return self.log_kind[:, None] + self.log_size - self.log_total

    def log_joint(self, items: Tensor, offsets: Tensor) -> Tensor:
        """log v_m P_m(n) prod_{k in S} w_m(k) / e_n(w_m), (B, M), of sets that lie one after another.

        Args:
            items: of all sets, (N).
            offsets: where each begins, and where the last ends, (B + 1).
        """
        table = self.log_weight.mT.contiguous()
        chosen = functional.embedding_bag(items, table, offsets, mode="sum", include_last_offset=True)
        return chosen + self.log_factor.mT[offsets.diff()]

    def log_prob(self, items: Tensor, mask: Tensor, samples: int | None = None) -> Tensor:
        """log P(set) in nats, exact: (B, n), (B, n) -> (B). It needs no `samples`; bounds do."""
        self.shape.check(items, mask)
        offsets = functional.pad(mask.sum(1).cumsum(0), (1, 0))
        return self.log_prob_flat(items[mask], offsets)

    @torch.no_grad()
    def log_prob_flat(self, items: Tensor, offsets: Tensor) -> Tensor:
        """log P of sets that lie one after another: (N), (B + 1) -> (B)."""
        parts = chunks(items, offsets, self.components)
        return torch.cat([self.log_joint(*part).logsumexp(1) for part in parts])

    @torch.no_grad()
    def log_next(self, items: Tensor) -> Tensor:
        """log P(S and k | S is in a set of one item more), (K): -inf for the items of S, (n)."""
        kind = (self.log_weight[:, items].sum(1) + self.log_factor[:, len(items) + 1]).softmax(0)
        top = self.log_weight.max()
        chance = top + (kind @ (self.log_weight - top).exp()).log()
        chance[items] = -torch.inf
        return chance.log_softmax(0)

    @torch.no_grad()
    def sample(self, sets: int) -> Batch:
        """New sets: (items, mask), (sets, largest drawn) each."""
        check_at_least_one(sets=sets)
        kind = torch.multinomial(self.log_kind.exp(), sets, replacement=True)
        sizes = torch.multinomial(self.log_size.exp()[kind], 1)[:, 0]
        most = int(sizes.max())
        return draw_distinct(self.log_weight, kind, sizes, most), mask_of(sizes, most)

    @torch.no_grad()
    def kinds_of_items(self) -> Tensor:
        """P(kind | an item that is drawn from a basket of one item is k), (K, M)."""
        share: Tensor = self.log_weight - self.log_weight.logsumexp(1, keepdim=True) + self.log_kind[:, None]
        return share.softmax(0).mT

    def check(self) -> None:
        """Kinds and sizes have probabilities that add up to 1."""
        for name, table in (("log_kind", self.log_kind[None]), ("log_size", self.log_size)):
            if not bool((table.logsumexp(1).abs() < ROUNDING).all()):
                raise ValueError(f"{name}: got probabilities that do not add up to 1; expected those of a fitted model")

    def changed(self) -> None:
        """Weights are other ones: what was computed of them is forgotten."""
        self._totals = None

    def pieces(self) -> Iterator[Tensor]:
        """Weights of a few components at a time."""
        yield from self.log_weight.split(max(1, WEIGHTS_AT_ONCE // self.shape.items))


def chunks(items: Tensor, offsets: Tensor, width: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Sets that lie one after another, a few at a time: so many that numbers for each of their items fit."""
    most = max(1, NUMBERS_AT_ONCE // width)
    first, ends = 0, offsets.tolist()
    for last in range(1, len(ends)):
        if last == len(ends) - 1 or ends[last + 1] - ends[first] > most:
            yield items[ends[first] : ends[last]], offsets[first : last + 1] - ends[first]
            first = last
