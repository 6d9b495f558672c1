"""Modes coupled across groups of variables: a base density that learns which categories go together."""

from collections.abc import Sequence
from math import log, pi

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.densities.base import Density
from tessella.nets import StagedTransformer

SPREAD = 0.3  # of the random start, so that no two classes are the same
NUMBERS_AT_ONCE = 2**27  # in memory, where points are scored or drawn
EMBEDDED = 0.1  # size of what the network is told about a mode, at the start


class CoupledModes(Density):
    """p(x) = prod_g sum_m w_m(x_<g) prod_(j in g) sum_k P_mjk(x_<g) N(x_j; c_jk, diag s_jk^2), for G groups g.

    A coupling flow of G layers, each of which moves one group given the groups before it, by the exact transport of a
    mixture to the base instead of an affine map; written as the density that this gives. It is autoregressive over
    groups and parallel within them: points are scored in one pass and drawn in G, however many variables.

    The network sees of a variable which mode it is in, softly: r_jk = N(x_j; c_jk, s_jk) / sum_l N(x_j; c_jl, s_jl).

    Args:
        counts: number of modes K_j of each of the N variables.
        dim: D, coordinates of a variable.
        groups: G; variable j is in group j mod G.
        classes: M, kinds of values that a group can take together.
        width, layers, dropout: of the network.
        fast: see `TokenTransformer`.

    >>> CoupledModes((2, 3, 2), dim=2, groups=2, classes=4, width=8, layers=1).sample((5,)).shape
    torch.Size([5, 3, 2])
    """

    group: Tensor
    missing: Tensor

    def __init__(
        self,
        counts: Sequence[int],
        dim: int,
        groups: int,
        classes: int,
        width: int,
        layers: int,
        dropout: float = 0.0,
        fast: bool = False,
    ):
        super().__init__()
        variables, modes = len(counts), max(counts)
        for name, value, most in (("groups", groups, variables), ("classes", classes, 2**20)):
            if not 1 <= value <= most:
                raise ValueError(f"{name}: got {value}; expected between 1 and {most}")
        self.counts, self.groups, self.classes = tuple(counts), groups, classes
        self.event_shape = (variables, dim)
        self.register_buffer("group", torch.arange(variables) % groups, persistent=False)
        missing = torch.arange(modes) >= torch.tensor(list(counts))[:, None]
        self.register_buffer("missing", missing, persistent=False)  # (N, K)
        self.centre = nn.Parameter(torch.randn(variables, modes, dim))
        self.log_scale = nn.Parameter(torch.zeros(variables, modes, dim))
        self.logit = nn.Parameter(SPREAD * torch.randn(variables, classes, modes))
        self.log_weight = nn.Parameter(torch.zeros(groups, classes))
        self.embed = nn.Parameter(EMBEDDED * torch.randn(variables, modes, width))
        self.net = StagedTransformer(self.group, width, layers, dropout, fast)
        self.head = nn.Parameter(torch.zeros(variables, width, classes * (modes + 1)))

    def log_prob(self, x: Tensor, context: None = None) -> Tensor:
        points = x.reshape(-1, *self.event_shape)
        parts = [points] if torch.is_grad_enabled() else points.split(self._points_at_once())
        return torch.cat([self._log_prob(part) for part in parts]).view(x.shape[:-2])

    def _points_at_once(self) -> int:
        """How many points may be scored together, as each takes the memory of all its tables."""
        return max(1, NUMBERS_AT_ONCE // (self.logit.numel() + 16 * self.embed.shape[-1] * len(self.counts)))

    def _log_prob(self, x: Tensor) -> Tensor:
        kernel = self._kernel(x)
        log_table, votes = self._tables(self.net(self._values(kernel)), slice(None))
        by_variable = (log_table + kernel[..., None, :]).logsumexp(-1)  # (B, N, M)
        log_weight = self.log_weight.expand(len(votes), -1, -1).index_add(1, self.group, votes).log_softmax(-1)
        total = log_weight.index_add(1, self.group, by_variable).logsumexp(-1).sum(-1)
        return total - 0.5 * x.shape[-1] * x.shape[-2] * log(2 * pi)

    @torch.no_grad()
    def sample(self, shape: tuple[int, ...], context: None = None) -> Tensor:
        size, most = torch.Size(shape).numel(), 4 * self._points_at_once()  # a pass sees only a part of the variables
        parts = [self._sample(min(most, size - start)) for start in range(0, size, most)]
        return torch.cat(parts or [self._sample(0)]).view(*shape, *self.event_shape)

    def _sample(self, size: int) -> Tensor:
        points = self.centre.new_zeros(size, *self.event_shape)
        row = torch.arange(size, device=points.device)
        for g in range(self.groups):
            members = (self.group == g).nonzero()[:, 0]
            log_table, votes = self._tables(self.net.answer(self._values(self._kernel(points)), g), members)
            chosen = torch.multinomial((votes.sum(1) + self.log_weight[g]).softmax(-1), 1)[:, 0]
            table = log_table[row, :, chosen].exp()  # (B, n, K)
            mode = torch.multinomial(table.flatten(0, 1), 1).view(size, len(members))
            centre, scale = self.centre[members, mode], self.log_scale[members, mode].exp()
            points[:, members] = torch.addcmul(centre, scale, torch.randn_like(centre))
        return points

    @torch.no_grad()
    def start(self, log_marginal: Tensor, centre: Tensor, scale: Tensor) -> None:
        """Begin with independent variables and these modes.

        Args:
            log_marginal: log P_j(k), variables below each other, (sum K_j).
            centre, scale: c and s, (sum K_j, D) each.
        """
        total, dim = sum(self.counts), self.event_shape[1]
        given = {
            "log_marginal": (log_marginal, (total,)),
            "centre": (centre, (total, dim)),
            "scale": (scale, (total, dim)),
        }
        for name, (value, shape) in given.items():
            if value.shape != shape:
                raise ValueError(f"{name}: got shape {tuple(value.shape)}; expected {shape}")
            checks.finite(name, value)
        self.centre[~self.missing] = centre.to(self.centre)
        self.log_scale[~self.missing] = scale.log().to(self.log_scale)
        marginal = torch.zeros_like(self.centre[..., 0])
        marginal[~self.missing] = log_marginal.to(marginal)
        self.logit.add_(marginal[:, None])

    def _values(self, kernel: Tensor) -> Tensor:
        """What the network sees of each variable, (B, N, width)."""
        return torch.einsum("bnk,nkw->bnw", kernel.softmax(-1), self.embed)

    def _tables(self, answers: Tensor, variables: Tensor | slice) -> tuple[Tensor, Tensor]:
        """log P_mjk of n variables, (B, n, M, K), and how each votes on its group's classes, (B, n, M)."""
        out = torch.einsum("bnw,nwo->bno", answers, self.head[variables]).unflatten(-1, (self.classes, -1))
        logit = (out[..., :-1] + self.logit[variables]).masked_fill(self.missing[variables, None], -torch.inf)
        return logit.log_softmax(-1), out[..., -1]

    def _kernel(self, points: Tensor) -> Tensor:
        """log N(x_j; c_jk, s_jk) without its constant, (B, N, K); -inf for modes that a variable does not have."""
        z = (points[..., None, :] - self.centre) * (-self.log_scale).exp()
        return (-0.5 * z.square().sum(-1) - self.log_scale.sum(-1)).masked_fill(self.missing, -torch.inf)
