"""Modes coupled across groups of variables: a base density that learns which categories go together."""

from collections.abc import Sequence
from math import log, pi

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.densities.base import Density
from tessella.nets import TokenTransformer

SPREAD = 0.3  # of the random start, so that no two classes are the same


class CoupledModes(Density):
    """p(x) = prod_g sum_m w_m(x_<g) prod_(j in g) sum_k P_mjk(x_<g) N(x_j; c_jk, diag s_jk^2), for G groups g.

    A coupling flow of G layers, each of which moves one group given the groups before it, by the exact transport of a
    mixture to the base instead of an affine map; written as the density that this gives. One network computes all
    groups' weights, side by side when points are scored, in G passes when they are drawn, however many variables.

    Args:
        counts: number of modes K_j of each of the N variables.
        dim: D, coordinates of a variable.
        groups: G; variable j is in group j mod G.
        classes: M, kinds of values that a group can take together.
        width, layers: of the network.
        fast: see `TokenTransformer`.

    >>> CoupledModes((2, 3, 2), dim=2, groups=2, classes=4, width=8, layers=1).sample((5,)).shape
    torch.Size([5, 3, 2])
    """

    group: Tensor
    seen: Tensor
    members: Tensor
    missing: Tensor

    def __init__(
        self, counts: Sequence[int], dim: int, groups: int, classes: int, width: int, layers: int, fast: bool = False
    ):
        super().__init__()
        variables, modes = len(counts), max(counts)
        for name, value, most in (("groups", groups, variables), ("classes", classes, 2**20)):
            if not 1 <= value <= most:
                raise ValueError(f"{name}: got {value}; expected between 1 and {most}")
        self.counts, self.groups, self.classes = tuple(counts), groups, classes
        self.event_shape = (variables, dim)
        group = torch.arange(variables) % groups
        self.register_buffer("group", group, persistent=False)
        self.register_buffer("seen", (group < torch.arange(groups)[:, None])[..., None], persistent=False)  # (G, N, 1)
        self.register_buffer("members", torch.bincount(group)[:, None, None], persistent=False)  # (G, 1, 1)
        missing = torch.arange(modes) >= torch.tensor(list(counts))[:, None]
        self.register_buffer("missing", missing, persistent=False)  # (N, K)
        self.centre = nn.Parameter(torch.randn(variables, modes, dim))
        self.log_scale = nn.Parameter(torch.zeros(variables, modes, dim))
        self.logit = nn.Parameter(SPREAD * torch.randn(variables, classes, modes))
        self.log_weight = nn.Parameter(torch.zeros(groups, classes))
        self.net = TokenTransformer(variables, dim + 1, classes * (modes + 1), width, layers, fast=fast)

    def log_prob(self, x: Tensor, context: None = None) -> Tensor:
        points = x.reshape(-1, *self.event_shape)
        out = self._outputs(points, self.seen)  # (G, B, N, ...)
        variable = torch.arange(len(self.counts), device=x.device)
        own = out[self.group, :, variable]  # (N, B, ...): each variable as its own group sees it
        log_table, votes = self._tables(own, self.logit[:, None], self.missing[:, None, None])
        by_variable = (log_table + self._kernel(points).transpose(0, 1)[:, :, None]).logsumexp(-1)  # (N, B, M)
        log_weight = self._log_weight(votes)
        total = log_weight.index_add(0, self.group, by_variable).logsumexp(-1).sum(0)
        return (total - 0.5 * x.shape[-1] * x.shape[-2] * log(2 * pi)).view(x.shape[:-2])

    @torch.no_grad()
    def sample(self, shape: tuple[int, ...], context: None = None) -> Tensor:
        size = torch.Size(shape).numel()
        points = self.centre.new_zeros(size, *self.event_shape)
        for g in range(self.groups):
            members = (self.group == g).nonzero()[:, 0]
            out = self._outputs(points, self.seen[g : g + 1])[0][:, members].transpose(0, 1)  # (n, B, ...)
            log_table, votes = self._tables(out, self.logit[members, None], self.missing[members, None, None])
            weight = (votes.mean(0) + self.log_weight[g]).softmax(-1)
            chosen = torch.multinomial(weight, 1)[:, 0]
            table = log_table[:, torch.arange(size), chosen].exp()  # (n, B, K)
            mode = torch.multinomial(table.flatten(0, 1), 1).view(len(members), size)
            centre, scale = self.centre[members[:, None], mode], self.log_scale[members[:, None], mode].exp()
            points[:, members] = torch.addcmul(centre, scale, torch.randn_like(centre)).transpose(0, 1)
        return points.view(*shape, *self.event_shape)

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

    def _outputs(self, points: Tensor, seen: Tensor) -> Tensor:
        """What the network says about every variable, (g, B, N, M (K + 1)), if it sees those of the groups `seen`."""
        visible = seen[:, None].expand(-1, len(points), -1, -1)
        shown = torch.where(visible, points, 0)
        return self.net(torch.cat([shown, visible.to(points)], -1))

    def _tables(self, out: Tensor, logit: Tensor, missing: Tensor) -> tuple[Tensor, Tensor]:
        """log P_mjk (n, B, M, K) and every variable's vote for the classes (n, B, M)."""
        raw = out.unflatten(-1, (self.classes, -1))
        table = (raw[..., :-1] + logit).masked_fill(missing, -torch.inf).log_softmax(-1)
        return table, raw[..., -1]

    def _log_weight(self, votes: Tensor) -> Tensor:
        """log w_m of every group, (G, B, M), from the votes (N, B, M) of its variables."""
        sums = votes.new_zeros(self.groups, *votes.shape[1:]).index_add(0, self.group, votes)
        return (sums / self.members + self.log_weight[:, None]).log_softmax(-1)

    def _kernel(self, points: Tensor) -> Tensor:
        """log N(x_j; c_jk, s_jk) without its constant, (B, N, K)."""
        z = (points[..., None, :] - self.centre) * (-self.log_scale).exp()
        return -0.5 * z.square().sum(-1) - self.log_scale.sum(-1)
