"""Mixture of products of categoricals, by expectation maximisation."""

from collections.abc import Mapping, Sequence
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from tessella.baselines.base import Baseline, check_at_least_one, check_positive, draw

SPREAD = 0.3  # of the random start: large enough to leave the saddle where all components agree, whatever the rows

ROUNDING = 1e-4  # of sums of probabilities that were saved


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
        check_at_least_one(components=components)
        super().__init__(counts, numbers_per_row=2 * components + 2 * max(counts, default=1))
        self.components = components
        weight = torch.full((components,), 1 / components, dtype=torch.float64)
        self.register_buffer("log_weight", weight.log())  # (M)
        self.register_buffer("log_table", self.uniform()[:, None].repeat(1, components))  # (sum K, M)

    @torch.no_grad()
    def fit(
        self,
        codes: Tensor,
        validation: Tensor | None = None,
        smoothing: float = 0.03,
        iterations: int = 500,
        patience: int = 5,
        tolerance: float = 1e-4,
        seed: int = 0,
    ) -> Self:
        """Start near the marginals, iterate `improve`, keep the tables that the watched rows liked best.

        Args:
            codes: training rows, (B, N).
            validation: the watched rows; without them the training rows are watched.
            smoothing: see `improve`. Little is needed where validation rows say when to stop.
            iterations: at most so many.
            patience: stop after so many iterations without a gain on the watched rows.
            tolerance: nats per row that count as a gain.
            seed: of the random start.
        """
        check_at_least_one(iterations=iterations, patience=patience)
        self.start(codes, seed)
        watched = codes if validation is None else validation
        self._check("validation", watched)
        best, kept, stale = float(self.log_prob(watched).mean()), self._tables(), 0
        for _ in range(iterations):
            self.improve(codes, smoothing)
            value = float(self.log_prob(watched).mean())
            stale = 0 if value > best + tolerance else stale + 1
            if value > best:
                best, kept = value, self._tables()
            if stale >= patience:
                break
        self.log_weight, self.log_table = kept
        return self

    @torch.no_grad()
    def start(self, codes: Tensor, seed: int = 0) -> None:
        """w_m = 1 / M,  P_mj(k) ~ P_j(k) exp(0.3 noise): every component near the marginals, no two the same."""
        noise = torch.randn(self.log_table.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        logits = self.log_frequencies(codes)[:, None] + SPREAD * noise.to(self.log_table)
        for j in range(len(self.counts)):
            self.log_table[self.segment(j)] = logits[self.segment(j)].log_softmax(0)
        self.log_weight.copy_(torch.zeros_like(self.log_weight).log_softmax(0))

    @torch.no_grad()
    def improve(self, codes: Tensor, smoothing: float) -> float:
        """w_m = (r_m + s) / (n + s M),  P_mj(k) = (r_mk + s P_j(k)) / (r_m + s): one iteration of EM.

        r_m is the number of rows that component m is responsible for, r_mk of those with c_j = k, and P_j the marginal:
        Dirichlet priors that weigh as much as s rows. The penalised likelihood never falls; with a tiny s, nor does
        the likelihood.

        Returns:
            Mean of log P over the rows before the change.
        """
        check_positive("smoothing", smoothing)
        marginal = self.log_frequencies(codes).exp()[:, None]
        by_component, by_category, log_prob = self._expected_counts(codes)
        total = len(codes) + smoothing * self.components
        self.log_weight.copy_(((by_component + smoothing) / total).log())
        self.log_table.copy_(((by_category + smoothing * marginal) / (by_component + smoothing)).log())
        return log_prob / len(codes)

    def check_tables(self) -> None:
        """All of them are probabilities: w_m, and P_mj(k) of every component and column, sum to 1."""
        tables = [self.log_weight, *(self.log_table[self.segment(j)] for j in range(len(self.counts)))]
        worst = max(float((table.logsumexp(0).exp() - 1).abs().max()) for table in tables)
        if not worst < ROUNDING:
            raise ValueError(f"probabilities: got some whose sum is {worst:.3g} away from 1; expected a sum of 1")

    def _expected_counts(self, codes: Tensor) -> tuple[Tensor, Tensor, float]:
        """r_m (M), r_mk (sum K, M) and the sum of log P, a block of rows at a time."""
        by_component, by_category = torch.zeros_like(self.log_weight), torch.zeros_like(self.log_table)
        log_prob = 0.0
        for part in codes.split(self.rows_at_once):
            joint = self._joint(part)
            evidence = joint.logsumexp(-1, keepdim=True)
            responsibility = (joint - evidence).exp()  # (b, M)
            by_component += responsibility.sum(0)
            for column in (part + self.offset).T:
                by_category.index_add_(0, column, responsibility)
            log_prob += float(evidence.sum())
        return by_component, by_category, log_prob

    def _joint(self, codes: Tensor) -> Tensor:
        """log w_m prod_j P_mj(c_j), (b, M)."""
        return functional.embedding_bag(codes + self.offset, self.log_table, mode="sum") + self.log_weight

    def _tables(self) -> tuple[Tensor, Tensor]:
        return self.log_weight.clone(), self.log_table.clone()

    def _log_prob(self, codes: Tensor) -> Tensor:
        return self._joint(codes).logsumexp(-1)

    @torch.no_grad()
    def propose(self, rows: int, given: Mapping[int, int]) -> tuple[Tensor, Tensor]:
        """Rows from P(c | c_j = given[j]), (rows, N), exactly, and log P(given) for each of them, (rows)."""
        joint = self.log_weight
        for j, code in given.items():
            joint = joint + self.log_table[int(self.offset[j]) + code]
        component = torch.multinomial(joint.softmax(0), rows, replacement=True)
        columns = [
            torch.full_like(component, given[j]) if j in given else draw(self.log_table[self.segment(j)].T[component])
            for j in range(len(self.counts))
        ]
        return torch.stack(columns, -1), joint.logsumexp(0).expand(rows)

    def _sample(self, rows: int) -> Tensor:
        return self.propose(rows, {})[0]
