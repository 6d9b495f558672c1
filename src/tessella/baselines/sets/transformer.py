"""One item after another, in every order."""

from itertools import permutations
from math import factorial, log

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.baselines.base import check_at_least_one, draw
from tessella.baselines.sets.base import SetBaseline
from tessella.data.itemsets.shape import SetShape
from tessella.densities.sets.sizes import log_orders
from tessella.nets import AttentionBlock, Stack
from tessella.nets.linear import linear

EXACT = 4  # items of a set, whose 24 orders are all summed; of more, some are drawn
ORDERS, FEW_ORDERS = 24, 4  # that are drawn, to score and to validate
LOGITS_AT_ONCE = 2**24


class ItemTransformer(SetBaseline):
    """P(S | n) = sum over orders of prod_i P(k_i | k_1, ..., k_(i-1), n), items that were there being left out.

    Trained on random orders. Of sets of at most 4 items all orders are summed, and the value is exact; of larger ones
    some are drawn, n! times their mean is an unbiased estimate of P, and its logarithm a lower bound.

    Args:
        shape: K items, sets of least to most of them.
        width, layers, dropout: of the network.
    """

    not_capturable_because = "sets have different sizes"
    size: nn.Parameter | None

    def __init__(self, shape: SetShape, width: int = 128, layers: int = 4, dropout: float = 0.1):
        super().__init__(shape)
        check_at_least_one(width=width, layers=layers)
        self.embed = nn.Parameter(0.02 * torch.randn(shape.items, width))
        self.place = nn.Parameter(0.02 * torch.randn(shape.most, width))
        sizes = None if shape.one_size else nn.Parameter(0.02 * torch.randn(shape.most + 1, width))
        self.register_parameter("size", sizes)  # what the first place is told
        self.dropout = nn.Dropout(dropout)
        self.blocks = Stack((AttentionBlock(width, 4, dropout) for _ in range(layers)), causal=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Parameter(torch.zeros(shape.items, width))
        self.bias = nn.Parameter(torch.zeros(shape.items))

    @property
    def exact(self) -> bool:
        return self.shape.most <= EXACT

    @property
    def capturable(self) -> bool:
        """Whether all batches have one shape."""
        return self.shape.one_size

    def loss(self, items: Tensor, mask: Tensor) -> Tensor:
        """Mean over a batch of the bound from one random order."""
        return -self._weights(items, mask, _drawn(mask, 1)).mean()

    def nll(self, items: Tensor, mask: Tensor) -> Tensor:
        """-log P of every set, or a bound of it from few orders: (B)."""
        return -self.log_prob(items, mask, FEW_ORDERS)

    def log_prob(self, items: Tensor, mask: Tensor, samples: int | None = None) -> Tensor:
        """log P(set), exact for sets of at most 4 items; else a bound from so many orders, 24 unless given: (B)."""
        self.shape.check(items, mask)
        sizes, places, values = mask.sum(1), [], []
        for n in sizes.unique().tolist():
            here = (sizes == n).nonzero()[:, 0]
            same = items[here][mask[here]].view(-1, n)
            places.append(here)
            values += [self._log_prob(part, torch.ones_like(part).bool(), samples) for part in self._few(same, samples)]
        return torch.cat(values)[torch.cat(places).argsort()]

    def chunked_log_weights(self, items: Tensor, mask: Tensor, samples: int) -> list[Tensor]:
        """log n! P(n) P(items in a random order), (S, b) for a few sets at a time."""
        self.shape.check(items, mask)
        parts = zip(self._few(items, samples), self._few(mask, samples), strict=True)
        return [self._weights(*part, _drawn(part[1], samples)) for part in parts]

    @torch.no_grad()
    def log_next(self, items: Tensor, samples: int | None = None) -> Tensor:
        """log P(k comes after those of S | they came first, and one comes after them), (K): -inf for those of S, (n).

        Orders of S are weighted by how likely they are; of more than 4 items, so many are drawn.
        """
        n = len(items)
        order = _all(n).to(items.device) if n <= EXACT else _drawn(torch.ones_like(items).bool(), samples or ORDERS)
        before = items[order]  # (S, n)
        there = torch.ones(len(before), n + 1, dtype=torch.bool, device=items.device)
        logits = self._logits(before, there)  # (S (n + 1), K), place by place of each order
        chance = logits.masked_fill(self._earlier(functional.pad(before, (0, 1)), there), -torch.inf)
        chance = chance.log_softmax(-1).double().view(len(before), n + 1, -1)
        log_p = chance[:, :n].gather(-1, before[..., None]).sum((1, 2))
        return (chance[:, n] + log_p.log_softmax(0)[:, None]).logsumexp(0)

    def _log_prob(self, items: Tensor, mask: Tensor, samples: int | None = None) -> Tensor:
        """Of sets of one size, none padded."""
        n = items.shape[1]
        orders = _all(n).to(items.device)[:, None].expand(-1, len(items), n) if n <= EXACT else None
        weights = self._weights(items, mask, _drawn(mask, samples or ORDERS) if orders is None else orders)
        return weights.logsumexp(0) - log(len(weights))

    def _few(self, sets: Tensor, samples: int | None) -> tuple[Tensor, ...]:
        """A few at a time, so that the logits of all their orders fit."""
        n = max(1, sets.shape[1])
        logits = n * self.shape.items * max(samples or ORDERS, ORDERS)
        return tuple(sets.split(max(1, LOGITS_AT_ONCE // logits)))

    def _weights(self, items: Tensor, mask: Tensor, orders: Tensor) -> Tensor:
        """log n! P(n) P(items in these orders), (S, B) for orders (S, B, n) that have existing ones first."""
        shuffled, there = (part.expand(orders.shape).gather(-1, orders).flatten(0, 1) for part in (items, mask))
        log_p = self._in_order(shuffled, there).view(len(orders), -1)
        return log_p + self.sizes.log_prob(mask) + log_orders(mask)

    def _in_order(self, items: Tensor, mask: Tensor) -> Tensor:
        """log P of items one after another, existing ones first: (B, n) -> (B)."""
        if not self.shape.one_size:
            largest = int(mask.sum(1).max())
            items, mask = items[:, :largest], mask[:, :largest]
        logits = self._logits(items[:, :-1], mask).masked_fill(self._earlier(items, mask), -torch.inf)
        chosen = logits.log_softmax(-1).gather(-1, self._existing(items, mask)[:, None])[:, 0]
        if self.shape.one_size:
            return chosen.view(items.shape).sum(1)
        return torch.zeros_like(items, dtype=chosen.dtype).masked_scatter(mask, chosen).sum(1)

    def _existing(self, values: Tensor, mask: Tensor) -> Tensor:
        """Those of places that hold an item, one after another: (B, n, *) -> (N, *)."""
        return values.flatten(0, 1) if self.shape.one_size else values[mask]

    def _earlier(self, items: Tensor, mask: Tensor) -> Tensor:
        """Whether item k came before each place that holds one, (N, K)."""
        place = torch.arange(items.shape[1], device=items.device)
        before = torch.where(place < place[:, None], items[:, None, :], self.shape.items)  # (B, n, n)
        before = self._existing(before, mask)
        came = torch.zeros(len(before), self.shape.items + 1, dtype=torch.bool, device=items.device)
        return came.scatter_(1, before, True)[:, :-1]

    def _logits(self, before: Tensor, mask: Tensor) -> Tensor:
        """Of the item at each place that holds one, (N, K), given those before: (B, n - 1), (B, n)."""
        return self._heads(self._existing(self._hidden(before, mask.sum(1)), mask))

    def _hidden(self, before: Tensor, sizes: Tensor) -> Tensor:
        """What is known at each place of sets of these sizes (B), and after them: (B, n) -> (B, n + 1, width)."""
        tokens = functional.pad(self.dropout(self.embed[before]), (0, 0, 1, 0)) + self.place[: before.shape[1] + 1]
        if self.size is not None:
            tokens = tokens + functional.pad(self.size[sizes][:, None], (0, 0, 0, before.shape[1]))
        hidden: Tensor = self.norm(self.blocks(tokens))
        return hidden

    def _heads(self, hidden: Tensor) -> Tensor:
        return linear(hidden, self.head, self.bias + self.log_share.to(self.bias))

    def _sample(self, sizes: Tensor) -> Tensor:
        return torch.cat([self._drawn_items(part[:, 0]) for part in self._few(sizes[:, None], 1)])

    def _drawn_items(self, sizes: Tensor) -> Tensor:
        """One after another; sets that have all draw no more."""
        items = torch.zeros(len(sizes), self.shape.most, dtype=torch.int64, device=sizes.device)
        for n in range(int(sizes.max())):
            left = (sizes > n).nonzero()[:, 0]
            before = items[left, :n]
            logits = self._heads(self._hidden(before, sizes[left])[:, -1])
            items[left, n] = draw(logits.scatter(1, before, -torch.inf))
        return items


def _all(n: int) -> Tensor:
    """All orders of n, (n!, n)."""
    return torch.tensor(list(permutations(range(n))), dtype=torch.int64).view(factorial(n), n)


def _drawn(mask: Tensor, orders: int) -> Tensor:
    """So many random orders of each set, existing items first: (S, *mask.shape)."""
    key = torch.rand(orders, *mask.shape, dtype=torch.float32, device=mask.device)  # the same orders in any precision
    return key.masked_fill(~mask, 2).argsort(-1)
