"""Mixtures of products of categoricals for groups of variables, each group given those before it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tessella.nets.staged import StagedTransformer, Walk

SPREAD = 0.3  # of the start, so that no two components are the same


class BlockMixture(nn.Module):
    """log w_gm(v_<g) and log P_mjk(v_<g): values v of the variables -> mixtures, one for each of G groups g.

    Variable j is in group j mod G. All tables come out of one pass over a `StagedTransformer`; those of one group need
    only the values of earlier ones. They begin uniform, and all components the same: `start` parts them.

    Args:
        counts: number of categories K_j of each of the N variables.
        groups: G, at most N.
        components: M, kinds of values that a group can take together.
        width, layers, dropout: of the network.
        fast: see `TokenTransformer`.
    """

    group: Tensor
    absent: Tensor

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
        super().__init__()
        variables, most = len(counts), max(counts)
        for name, value, limit in (("groups", groups, variables), ("components", components, 2**20)):
            if not 1 <= value <= limit:
                raise ValueError(f"{name}: got {value}; expected between 1 and {limit}")
        self.groups, self.components = groups, components
        self.register_buffer("group", torch.arange(variables) % groups, persistent=False)
        absent = torch.arange(most) >= torch.tensor(list(counts))[:, None]
        self.register_buffer("absent", absent, persistent=False)  # (N, K)
        self.logit = nn.Parameter(torch.zeros(variables, components, most))
        self.log_weight = nn.Parameter(torch.zeros(groups, components))
        self.net = StagedTransformer(self.group, width, layers, dropout, fast)
        self.head = nn.Parameter(torch.zeros(variables, width, components * (most + 1)))

    @property
    def numbers_per_row(self) -> int:
        """About how many numbers are held for a row while it is scored."""
        return self.logit.numel() + 16 * self.net.place.shape[-1] * len(self.group)

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Values (B, N, width) -> log P_mjk, (B, N, M, K), and log w_gm, (B, G, M)."""
        log_table, votes = self._tables(self.net(values), slice(None))
        log_weight = self.log_weight.expand(len(votes), -1, -1).index_add(1, self.group, votes)
        return log_table, log_weight.log_softmax(-1)

    def of_group(self, walk: Walk, group: int) -> tuple[Tensor, Tensor, Tensor]:
        """The n variables of one group, their log P_mjk, (B, n, M, K), and log w_m, (B, M), as in `forward`.

        Args:
            walk: through the network, which was told the values of all groups before this one.
            group: which.
        """
        members = (self.group == group).nonzero()[:, 0]
        log_table, votes = self._tables(walk.answer(group), members)
        return members, log_table, (votes.sum(1) + self.log_weight[group]).log_softmax(-1)

    def total(self, log_weight: Tensor, by_component: Tensor) -> Tensor:
        """sum_g log sum_m w_gm prod_(j in g) exp(l_jm), for l (B, N, M): (B)."""
        return log_weight.index_add(1, self.group, by_component).logsumexp(-1).sum(-1)

    @torch.no_grad()
    def start(self, log_marginal: Tensor) -> None:
        """Begin near independent variables with marginals log P_j(k), variables below each other, (sum K_j)."""
        marginal = torch.zeros(self.absent.shape, dtype=self.logit.dtype, device=self.logit.device)
        marginal[~self.absent] = log_marginal.to(marginal)
        parted = SPREAD * torch.randn_like(self.logit) if self.components > 1 else 0
        self.logit.copy_(marginal[:, None] + parted)

    def _tables(self, answers: Tensor, variables: Tensor | slice) -> tuple[Tensor, Tensor]:
        """log P_mjk of n variables, (B, n, M, K), and how each votes on its group's components, (B, n, M)."""
        out = torch.einsum("bnw,nwo->bno", answers, self.head[variables]).unflatten(-1, (self.components, -1))
        logit = (out[..., :-1] + self.logit[variables]).masked_fill(self.absent[variables, None], -torch.inf)
        return logit.log_softmax(-1), out[..., -1]
