"""Mixture of products of categoricals, by expectation maximisation."""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from tessella.baselines.base import Baseline, check_positive, draw


class CategoricalMixture(Baseline):
    """P(c) = sum_m w_m prod_j P_mj(c_j): rows come in M kinds, and within a kind all variables are independent.

    Also known as latent class analysis; uniform until `fit`.

    Args:
        counts: number of categories of each variable.
        components: M.

    References:
        A. P. Dempster, N. M. Laird, D. B. Rubin, "Maximum likelihood from incomplete data via the EM algorithm", 1977.

    >>> rows = torch.tensor([[0, 0], [1, 1]]).repeat(50, 1)  # two variables that always agree: P = 1/2 each
    >>> model = CategoricalMixture((2, 2), components=2).fit(rows)
    >>> model.log_prob(rows[:2]).exp().round(decimals=2)
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """

    log_weight: Tensor
    log_table: Tensor

    def __init__(self, counts: Sequence[int], components: int):
        if components < 1:
            raise ValueError(f"components: got {components}; expected at least 1")
        super().__init__(counts, numbers_per_row=2 * components + components * max(counts, default=1))
        self.components = components
        weight = torch.full((components,), 1 / components, dtype=torch.float64)
        self.register_buffer("log_weight", weight.log())  # (M)
        self.register_buffer("log_table", self.uniform()[:, None].repeat(1, components))  # (sum K, M)

    @torch.no_grad()
    def fit(
        self,
        codes: Tensor,
        validation: Tensor | None = None,
        smoothing: float = 0.1,
        iterations: int = 500,
        patience: int = 5,
        tolerance: float = 1e-4,
        seed: int = 0,
    ) -> Self:
        """Start from random rows, iterate `improve`, keep the tables that the watched rows liked best.

        Args:
            codes: training rows, (B, N).
            validation: the watched rows; without them the training rows are watched.
            smoothing: see `improve`.
            iterations: at most so many.
            patience: stop after so many iterations without a gain on the watched rows.
            tolerance: nats per row that count as a gain.
            seed: of the random start.
        """
        check_positive("iterations", iterations)
        log_prior = self._start(codes, smoothing, seed)
        watched = codes if validation is None else validation
        best, since = float(self.log_prob(watched).mean()), 0
        kept = self.log_weight.clone(), self.log_table.clone()
        for _ in range(iterations):
            self.improve(codes, log_prior, smoothing)
            value = float(self.log_prob(watched).mean())
            since = 0 if value > best + tolerance else since + 1
            if value > best:
                best, kept = value, (self.log_weight.clone(), self.log_table.clone())
            if since >= patience:
                break
        self.log_weight.copy_(kept[0])
        self.log_table.copy_(kept[1])
        return self
