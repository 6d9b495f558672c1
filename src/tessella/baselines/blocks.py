"""Groups of variables one after another, a mixture of products of categoricals for each."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from tessella.baselines.base import Baseline
from tessella.dequantizers.components import MOST, shared_components
from tessella.dequantizers.profiles import profile_positions
from tessella.nets import BlockMixture

EMBEDDED = 0.1  # size of what the network is told about a category, at the start
POSITIONS = 2  # dimensions in which rare categories look for their like


class BlockAutoregressiveMixture(Baseline):
    """P(c) = prod_g sum_m w_m(c_<g) prod_(j in g) P_mj(c_j | c_<g), for G groups g of variables.

    Autoregressive over groups, parallel within them: a row is scored in one pass and drawn in G. With as many groups as
    variables it is a causal transformer, with one a mixture of products. Of a variable with more than 256 categories
    the rarer ones share 64 outcomes, P_mj(c) = P_mj(outcome of c) R_j(c | outcome). `Trainable`.

    Args:
        counts: number of categories of each variable.
        groups: G; variable j is in group j mod G. No more than there are variables are made.
        components: M, kinds of values that a group can take together.
        width, layers, dropout: of the network.
        fast: see `Transformer`.

    >>> rows = torch.tensor([[0, 0], [1, 1]])
    >>> BlockAutoregressiveMixture((2, 2), groups=2, components=1, width=8, layers=1).log_prob(rows).exp()
    tensor([0.2500, 0.2500], grad_fn=<ExpBackward0>)
    """

    outcome: Tensor
    started: Tensor
    within: nn.Parameter | None

    def __init__(
        self,
        counts: Sequence[int],
        groups: int,
        components: int,
        width: int,
        layers: int,
        dropout: float = 0.0,
        fast: bool = False,
    ):
        sizes = [min(count, MOST) for count in counts]
        mixture = BlockMixture(sizes, min(groups, len(sizes)), components, width, layers, dropout, fast)
        super().__init__(counts, mixture.numbers_per_row)
        self.mixture, self.sizes = mixture, tuple(sizes)
        self.embed = nn.Parameter(EMBEDDED * torch.randn(sum(self.counts), width))
        shared = torch.cat([torch.arange(count) % MOST for count in self.counts])
        self.register_buffer("outcome", shared)  # (sum K)
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))
        within = nn.Parameter(torch.zeros(sum(self.counts))) if max(self.counts) > MOST else None
        self.register_parameter("within", within)  # log R_j, up to a constant for each outcome

    def loss(self, batch: Tensor) -> Tensor:
        """Mean of -log P over a batch, the training objective."""
        return self.nll(batch).mean()

    def initialize(self, batch: Tensor) -> None:
        """`start` from a batch, where it did not start from more rows before."""
        if not bool(self.started):
            self.start(batch)

    @torch.no_grad()
    def start(self, codes: Tensor) -> None:
        """Begin near the independent model of these rows, rare categories that co-occur alike in one outcome."""
        self._check("codes", codes)
        log_frequency = self.log_frequencies(codes)
        if self.within is not None:
            self._share(codes)
            self.within.copy_(log_frequency)
        frequency = torch.zeros(len(self.sizes), MOST, dtype=torch.float64, device=self.outcome.device)
        frequency.view(-1).index_add_(0, self._segment_ids(), log_frequency.exp())
        present = torch.arange(MOST, device=self.outcome.device) < torch.tensor(self.sizes).to(self.outcome)[:, None]
        self.mixture.start(frequency[present].clamp_min(1e-12).log())
        self.started.fill_(True)

    def check_tables(self) -> None:
        """Every category has an outcome of its own column."""
        most = torch.tensor(self.sizes).repeat_interleave(torch.tensor(self.counts))
        if not ((self.outcome >= 0) & (self.outcome < most)).all():
            raise ValueError(f"outcome: got {self.outcome.tolist()!s:.80}; expected outcomes of each category's column")

    def propose(self, rows: int, given: Mapping[int, int]) -> tuple[Tensor, Tensor]:
        """Rows with c_j = given[j], (rows, N), and log w, (rows), so that P(c_free | given) = E w 1[c_free] / E w.

        Group by group: w is multiplied by the probability of what is given of the group, and the rest of it drawn given
        that. E w = P(given), and all w are equal where only the first group is given.
        """
        sizes = [min(self.rows_at_once, rows - start) for start in range(0, rows, self.rows_at_once)]
        parts = [self._propose(size, given) for size in sizes]
        return torch.cat([codes for codes, _ in parts]), torch.cat([log_w for _, log_w in parts])

    @torch.no_grad()
    def _propose(self, rows: int, given: Mapping[int, int]) -> tuple[Tensor, Tensor]:
        device, row = self.embed.device, torch.arange(rows, device=self.embed.device)
        codes = torch.zeros(rows, len(self.counts), dtype=torch.int64, device=device)
        walk = self.mixture.walk(rows)
        log_within, log_w = self._log_within(), self.embed.new_zeros(rows)
        for _ in range(self.mixture.groups):
            members, log_table, log_weight = walk.tables()
            for place, j in enumerate(members.tolist()):
                if j in given:
                    flat = int(self.offset[j]) + given[j]
                    log_weight = log_weight + log_table[:, place, :, self.outcome[flat]] + log_within[flat]
            log_w = log_w + log_weight.logsumexp(-1)
            chosen = torch.multinomial(log_weight.softmax(-1), 1)[:, 0]
            outcome = torch.multinomial(log_table[row, :, chosen].exp().flatten(0, 1), 1).view(rows, -1)
            for place, j in enumerate(members.tolist()):
                codes[:, j] = given[j] if j in given else self._category(j, outcome[:, place], log_within)
            walk.tell(self.embed[codes[:, members] + self.offset[members]])
        return codes, log_w

    def _log_prob(self, codes: Tensor) -> Tensor:
        flat = codes + self.offset
        log_table, log_weight = self.mixture(self.embed[flat])
        outcome = self.outcome[flat][..., None, None].expand(-1, -1, self.mixture.components, 1)
        by_component = log_table.gather(-1, outcome).squeeze(-1)  # (B, N, M)
        return self.mixture.total(log_weight, by_component) + self._log_within()[flat].sum(-1)

    def _sample(self, rows: int) -> Tensor:
        return self._propose(rows, {})[0]

    def _share(self, codes: Tensor) -> None:
        """Which outcome the categories of large variables belong to."""
        positions = profile_positions(codes, self.counts, POSITIONS)
        for j, count in enumerate(self.counts):
            if count > MOST:
                frequency = torch.bincount(codes[:, j].cpu(), minlength=count)
                self.outcome[self.segment(j)] = shared_components(positions[j, :count], frequency).to(self.outcome)

    def _segment_ids(self) -> Tensor:
        """256 j + outcome of every category, flat (sum K)."""
        variable = torch.arange(len(self.counts), device=self.count.device).repeat_interleave(self.count)
        return MOST * variable + self.outcome

    def _log_within(self) -> Tensor:
        """log R_j(c | outcome of c) of every category, flat (sum K): 0 where an outcome is one category."""
        if self.within is None:
            return self.embed.new_zeros(len(self.embed))
        segment = self._segment_ids()
        highest = self.within.detach().new_full((MOST * len(self.counts),), -torch.inf)
        highest = highest.scatter_reduce(0, segment, self.within.detach(), "amax")[segment]
        total = self.within.new_zeros(MOST * len(self.counts)).index_add(0, segment, (self.within - highest).exp())
        return self.within - highest - total.log()[segment]

    def _category(self, variable: int, outcome: Tensor, log_within: Tensor) -> Tensor:
        """A category for each outcome of a variable, (rows)."""
        if self.counts[variable] <= MOST:
            return outcome
        codes = torch.empty_like(outcome)
        here = self.segment(variable)
        for one in outcome.unique().tolist():
            asked = outcome == one
            members = (self.outcome[here] == one).nonzero()[:, 0]
            drawn = torch.multinomial(log_within[here][members].exp(), int(asked.sum()), replacement=True)
            codes[asked] = members[drawn]
        return codes
