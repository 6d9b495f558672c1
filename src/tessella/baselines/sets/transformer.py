"""One item after another, in every order."""

from itertools import permutations
from math import factorial

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.baselines.base import check_at_least_one, draw
from tessella.baselines.sets.base import SetBaseline
from tessella.data.itemsets.shape import SetShape
from tessella.densities.sets.sizes import log_orders
from tessella.nets import AttentionBlock, Stack

EXACT = 4  # items of a set, whose 24 orders are all summed; of more, some are drawn
ORDERS = 24


class ItemTransformer(SetBaseline):
    """P(S | n) = sum over orders of prod_i P(k_i | k_1, ..., k_(i-1)), items that were there being left out.

    Trained on random orders. Of sets of at most 4 items all orders are summed, and the value is exact; of larger ones
    some are drawn, n! times their mean is an unbiased estimate of P, and its logarithm a lower bound.

    Args:
        shape: K items, sets of least to most of them.
        width, layers, dropout: of the network.
    """

    sets_at_once = 256

    def __init__(self, shape: SetShape, width: int = 128, layers: int = 4, dropout: float = 0.1):
        super().__init__(shape)
        check_at_least_one(width=width, layers=layers)
        self.embed = nn.Parameter(0.02 * torch.randn(shape.items, width))
        self.place = nn.Parameter(0.02 * torch.randn(shape.most, width))
        self.dropout = nn.Dropout(dropout)
        self.blocks = Stack((AttentionBlock(width, 4, dropout) for _ in range(layers)), causal=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Parameter(torch.zeros(shape.items, width))
        self.bias = nn.Parameter(torch.zeros(shape.items))

    @property
    def exact(self) -> bool:
        return self.shape.most <= EXACT

    def loss(self, items: Tensor, mask: Tensor) -> Tensor:
        """Mean over a batch of the bound from one random order."""
        key = torch.rand(items.shape, device=items.device).masked_fill(~mask, 2)  # who does not exist comes last
        order = key.argsort(1)
        log_p = self._in_order(items.gather(1, order), mask.gather(1, order))
        return -(log_p + self.sizes.log_prob(mask) + log_orders(mask)).mean()

    def log_prob(self, items: Tensor, mask: Tensor, samples: int | None = None) -> Tensor:
        """log P(set), exact for small sets; else a bound from so many orders, 24 unless given: (B)."""
        if self.exact:
            return super().log_prob(items, mask)
        weights = self.chunked_log_weights(items, mask, samples=samples or ORDERS)
        return torch.cat([part.logsumexp(0) - torch.tensor(float(len(part))).log() for part in weights])

    def chunked_log_weights(self, items: Tensor, mask: Tensor, samples: int) -> list[Tensor]:
        """log n! P(n) P(items in a random order), (S, b) for a few sets at a time."""
        self.shape.check(items, mask)
        parts = zip(items.split(self.sets_at_once), mask.split(self.sets_at_once), strict=True)
        return [self._weights(*part, samples) for part in parts]

    def _weights(self, items: Tensor, mask: Tensor, samples: int) -> Tensor:
        key = torch.rand(samples, *items.shape, device=items.device).masked_fill(~mask, 2)
        order = key.argsort(-1)
        shuffled = items.expand(samples, *items.shape).gather(-1, order).flatten(0, 1)
        there = mask.expand(samples, *mask.shape).gather(-1, order).flatten(0, 1)
        log_p = self._in_order(shuffled, there).view(samples, -1)
        return log_p + self.sizes.log_prob(mask) + log_orders(mask)

    def _log_prob(self, items: Tensor, mask: Tensor) -> Tensor:
        """All orders of the places; where some are empty, each order of the items comes several times."""
        places = items.shape[1]
        orders = torch.tensor(list(permutations(range(places))), device=items.device)  # (n!, n)
        shuffled, there = (part[:, orders].flatten(0, 1) for part in (items, mask))
        key = there.long().argsort(dim=1, descending=True, stable=True)  # items first
        log_p = self._in_order(shuffled.gather(1, key), there.gather(1, key)).view(len(items), -1)
        times = torch.tensor([factorial(places) / factorial(n) for n in range(places + 1)], device=items.device)
        return self.sizes.log_prob(mask) + log_p.logsumexp(1) - times.log()[mask.sum(1)]

    def _in_order(self, items: Tensor, mask: Tensor) -> Tensor:
        """log P of items one after another, existing ones first: (B, n) -> (B)."""
        logits = self._logits(items[:, :-1])
        logits = logits.masked_fill(self._earlier(items, mask), -torch.inf)
        chosen = logits.log_softmax(-1).gather(-1, items[..., None])[..., 0]
        return torch.where(mask, chosen, 0).sum(1)

    def _earlier(self, items: Tensor, mask: Tensor) -> Tensor:
        """Whether item k came before place i, (B, n, K); nowhere where no item is, so that softmaxes are finite."""
        here = items[..., None] == torch.arange(self.shape.items, device=items.device)
        before = here.cumsum(1) > here  # (B, n, K)
        return before & mask[..., None]

    def _logits(self, before: Tensor) -> Tensor:
        """Of the next item after each of those before, and of the first: (B, n) -> (B, n + 1, K)."""
        n = before.shape[1]
        tokens = functional.pad(self.dropout(self.embed[before]), (0, 0, 1, 0))
        h = self.norm(self.blocks(tokens + self.place[: n + 1]))
        logits: Tensor = h @ self.head.T + self.bias + self.log_share.to(self.bias)
        return logits

    def _sample(self, sizes: Tensor) -> Tensor:
        items = torch.zeros(len(sizes), 0, dtype=torch.int64, device=sizes.device)
        for _ in range(self.shape.most):
            logits = self._logits(items)[:, -1].scatter(1, items, -torch.inf)
            items = torch.cat([items, draw(logits)[:, None]], 1)
        place = torch.arange(self.shape.most, device=sizes.device)
        return items.masked_fill(place >= sizes[:, None], 0)
