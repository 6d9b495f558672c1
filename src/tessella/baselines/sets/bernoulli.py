"""Items that are chosen on their own, given how many there are; and mixtures of that."""

from typing import Self

import torch
from torch import Tensor, nn

from tessella.baselines.base import check_at_least_one
from tessella.baselines.sets.base import SetBaseline
from tessella.data.itemsets.shape import SetShape
from tessella.densities.sets.symmetric import draw_distinct, log_symmetric

ROUNDS, CLOSE = 200, 1e-10
SPREAD = 1.0  # of the components' logits around the items' frequencies, before training


class ConditionalBernoulli(SetBaseline):
    """P(S | n) = prod_{k in S} w_k / e_n(w): independent items, given that there are n different ones.

    References:
        S. X. Chen, A. P. Dempster, J. S. Liu, "Weighted finite population sampling to maximize entropy", 1994.
    """

    log_weight: Tensor

    def __init__(self, shape: SetShape):
        super().__init__(shape)
        self.register_buffer("log_weight", self.log_share.clone())

    @torch.no_grad()
    def fit(self, items: Tensor, mask: Tensor) -> Self:
        """Maximum likelihood, of items that each were seen half a time more than they were.

        The gradient of the likelihood in log w_k is how often k was seen, less how often it is expected. Weights are
        multiplied by the quotient of the two until they agree.
        """
        self.start(items, mask)
        sets = torch.bincount(mask.sum(1), minlength=self.shape.most + 1).double()
        seen = self.log_share + (sets * torch.arange(len(sets), device=sets.device)).sum().log()
        log_weight = self.log_share.clone()
        for _ in range(ROUNDS):
            with torch.enable_grad():
                free = log_weight.clone().requires_grad_()
                total = (sets * log_symmetric(free, self.shape.most)).sum()
                (expected,) = torch.autograd.grad(total, free)
            step = seen - expected.log()
            log_weight += step
            if float(step.abs().max()) < CLOSE:
                break
        self.log_weight.copy_(log_weight.log_softmax(0))
        return self

    def _log_prob(self, items: Tensor, mask: Tensor) -> Tensor:
        total = log_symmetric(self.log_weight, self.shape.most)[mask.sum(1)]
        return self.sizes.log_prob(mask) + (self.log_weight[items] * mask).sum(1) - total

    def _sample(self, sizes: Tensor) -> Tensor:
        return draw_distinct(self.log_weight[None], torch.zeros_like(sizes), sizes, self.shape.most)


class BernoulliMixture(SetBaseline):
    """P(S | n) = sum_m v_m prod_{k in S} w_mk / e_n(w_m),  log w_mk = log f_k + b_k + a_m . c_k.

    What kind of basket, then its items, each on its own, none twice. f are the items' frequencies, and what is learned
    beyond them has few dimensions, so that rare items share what is known of others.

    Args:
        shape: K items, sets of least to most of them.
        components: M.
        rank: of a_m and c_k.
    """

    def __init__(self, shape: SetShape, components: int = 256, rank: int = 16):
        super().__init__(shape)
        check_at_least_one(components=components, rank=rank)
        self.log_component = nn.Parameter(torch.zeros(components))
        self.component = nn.Parameter(torch.randn(components, rank))
        self.item = nn.Parameter(SPREAD / rank**0.5 * torch.randn(rank, shape.items))
        self.bias = nn.Parameter(torch.zeros(shape.items))

    @property
    def log_weight(self) -> Tensor:
        """log w, (M, K), each row normalised."""
        logits = self.log_share.to(self.bias) + self.bias + self.component @ self.item
        return logits.log_softmax(1)

    def _log_prob(self, items: Tensor, mask: Tensor) -> Tensor:
        weight, n = self.log_weight, mask.sum(1)
        total = log_symmetric(weight, self.shape.most).to(weight)[:, n]  # (M, B)
        chosen = (weight[:, items] * mask).sum(-1)  # (M, B)
        by_component = chosen - total + self.log_component.log_softmax(0)[:, None]
        return self.sizes.log_prob(mask) + by_component.logsumexp(0)

    def _sample(self, sizes: Tensor) -> Tensor:
        component = torch.multinomial(self.log_component.softmax(0), len(sizes), replacement=True)
        return draw_distinct(self.log_weight, component, sizes, self.shape.most)
