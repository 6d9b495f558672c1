"""Items that are chosen on their own, given how many there are; and mixtures of that."""

from typing import Self

import torch
from torch import Tensor

from tessella.baselines.sets.base import SetBaseline
from tessella.data.itemsets.shape import SetShape
from tessella.densities.sets import KindsOfSets
from tessella.densities.sets.symmetric import draw_distinct, log_symmetric

ROUNDS, CLOSE = 200, 1e-10


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
    """P(S | n) = sum_m v_m prod_{k in S} w_m(k) / e_n(w_m): what kind of set, then its items on their own, none twice.

    Args:
        shape: K items, sets of least to most of them.
        components, rank, prior: see `KindsOfSets`.
    """

    def __init__(self, shape: SetShape, components: int = 256, rank: int = 16, prior: float = 3.0):
        super().__init__(shape)
        self.kinds = KindsOfSets(shape.items, components, rank, prior)

    @torch.no_grad()
    def start(self, items: Tensor, mask: Tensor) -> None:
        super().start(items, mask)
        self.kinds.start(self.log_share.to(self.kinds.log_share), len(items))

    def loss(self, items: Tensor, mask: Tensor) -> Tensor:
        """Mean of -log P over a batch, and the prior."""
        return super().loss(items, mask) + self.kinds.penalty()

    def _log_prob(self, items: Tensor, mask: Tensor) -> Tensor:
        weight, n = self.kinds.log_weight, mask.sum(1)
        total = log_symmetric(weight, self.shape.most).to(weight)[:, n]  # (M, B)
        chosen = (weight[:, items] * mask).sum(-1)  # (M, B)
        by_component = chosen - total + self.kinds.log_kind[:, None]
        return self.sizes.log_prob(mask) + by_component.logsumexp(0)

    def _sample(self, sizes: Tensor) -> Tensor:
        return draw_distinct(self.kinds.log_weight, self.kinds.draw(len(sizes)), sizes, self.shape.most)
