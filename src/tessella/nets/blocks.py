"""Mixtures of products of categoricals for groups of variables, each group given those before it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.nets.attention import AttentionBlock, Kept, Stack

SPREAD = 0.3  # of the start, so that no two components are the same


class BlockMixture(nn.Module):
    """log w_gm(v_<g) and log P_mjk(v_<g): values v of the variables -> mixtures, one for each of G groups g.

    Variable j is in group j mod G. A causal transformer over groups: the token of a group is the sum of what is known
    about its variables, and all tables come out of one pass over G tokens. They begin uniform, and all components the
    same: `start` parts them.

    Args:
        counts: number of categories K_j of each of the N variables.
        groups: G, at most N.
        components: M, kinds of values that a group can take together.
        width, layers, dropout: of the network.
        fast: see `Transformer`.
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
        self.groups, self.components, self.width = groups, components, width
        self.register_buffer("group", torch.arange(variables) % groups, persistent=False)
        absent = torch.arange(most) >= torch.tensor(list(counts))[:, None]
        self.register_buffer("absent", absent, persistent=False)  # (N, K)
        self.place = nn.Parameter(0.02 * torch.randn(groups, width))
        self.blocks = Stack((AttentionBlock(width, 4, dropout) for _ in range(layers)), causal=True, fast=fast)
        self.norm = nn.LayerNorm(width)
        self.log_weight = nn.Parameter(torch.zeros(groups, components))
        self.weight_head = nn.Parameter(torch.zeros(groups, width, components))
        self.logit = nn.Parameter(torch.zeros(variables, components, most))
        self.head = nn.Parameter(torch.zeros(variables, width, components * most))

    @property
    def numbers_per_row(self) -> int:
        """About how many numbers are held for a row while it is scored."""
        return self.logit.numel() + 16 * self.width * self.groups

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Values (B, N, width) -> log P_mjk, (B, N, M, K), and log w_gm, (B, G, M)."""
        told = values.new_zeros(len(values), self.groups, self.width).index_add(1, self.group, values)
        tokens = functional.pad(told[:, :-1], (0, 0, 1, 0)) + self.place  # nothing is known about the first group
        h = self.norm(self.blocks(tokens))
        weights = torch.einsum("bgw,gwm->bgm", h, self.weight_head) + self.log_weight
        return self._tables(h[:, self.group], slice(None)), weights.log_softmax(-1)

    def walk(self, rows: int) -> "Walk":
        """The same, group after group, for values that become known on the way."""
        return Walk(self, rows)

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

    def _tables(self, h: Tensor, variables: Tensor | slice) -> Tensor:
        """log P_mjk of n variables from the states of their groups, (B, n, width) -> (B, n, M, K)."""
        out = torch.einsum("bnw,nwo->bno", h, self.head[variables]).unflatten(-1, (self.components, -1))
        logits: Tensor = (out + self.logit[variables]).masked_fill(self.absent[variables, None], -torch.inf)
        return logits.log_softmax(-1)


class Walk:
    """The tables of one group after another, each token once through the network: keys and values are kept.

    Args:
        net: whose groups are walked through.
        rows: B.
    """

    def __init__(self, net: BlockMixture, rows: int):
        self.net, self.next = net, 0
        self.told = net.place.new_zeros(rows, net.width)
        self.kept = Kept(net.blocks, net.groups, rows)

    def tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """The n variables of the next group, their log P_mjk, (B, n, M, K), and log w_m, (B, M), as in `forward`."""
        net, group = self.net, self.next
        h = net.norm(net.blocks.after(self.told + net.place[group], self.kept))
        members = (net.group == group).nonzero()[:, 0]
        weights = h @ net.weight_head[group] + net.log_weight[group]
        return members, net._tables(h[:, None].expand(-1, len(members), -1), members), weights.log_softmax(-1)

    def tell(self, values: Tensor) -> None:
        """The values of that group's variables, (B, n, width)."""
        self.told, self.next = values.sum(1), self.next + 1
