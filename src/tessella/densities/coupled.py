"""Modes coupled across groups of variables: a base density that learns which categories go together."""

from collections.abc import Sequence
from math import log, pi

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.densities.base import Density
from tessella.nets import BlockMixture

NUMBERS_AT_ONCE = 2**27  # in memory, where points are scored or drawn
EMBEDDED = 0.1  # size of what the network is told about a mode, at the start


class CoupledModes(Density):
    """p(x) = prod_g sum_m w_m(x_<g) prod_(j in g) sum_k P_mjk(x_<g) N(x_j; c_jk, diag s_jk^2), for G groups g.

    A coupling flow of G layers, each of which moves one group given the groups before it, by the exact transport of a
    mixture to the base instead of an affine map; written as the density that this gives. It is autoregressive over
    groups and parallel within them: points are scored in one pass and drawn in G, however many variables. With
    categories alone the points carry nothing: `baselines.BlockAutoregressiveMixture` is the same without them.

    The network sees of a variable which mode it is in, softly: r_jk = N(x_j; c_jk, s_jk) / sum_l N(x_j; c_jl, s_jl).

    Args:
        counts: number of modes K_j of each of the N variables.
        dim: D, coordinates of a variable.
        groups, components, width, layers: see `BlockMixture`.

    >>> CoupledModes((2, 3, 2), dim=2, groups=2, components=4, width=8, layers=1).sample((5,)).shape
    torch.Size([5, 3, 2])
    """

    def __init__(self, counts: Sequence[int], dim: int, groups: int, components: int, width: int, layers: int):
        super().__init__()
        variables, modes = len(counts), max(counts)
        self.counts, self.event_shape = tuple(counts), (variables, dim)
        self.mixture = BlockMixture(counts, groups, components, width, layers)
        self.centre = nn.Parameter(torch.randn(variables, modes, dim))
        self.log_scale = nn.Parameter(torch.zeros(variables, modes, dim))
        self.embed = nn.Parameter(EMBEDDED * torch.randn(variables, modes, width))

    def log_prob(self, x: Tensor, context: None = None) -> Tensor:
        points = x.reshape(-1, *self.event_shape)
        parts = [points] if torch.is_grad_enabled() else points.split(self._points_at_once())
        return torch.cat([self._log_prob(part) for part in parts]).view(x.shape[:-2])

    def _points_at_once(self) -> int:
        """How many points may be scored together, as each takes the memory of all its tables."""
        return max(1, NUMBERS_AT_ONCE // self.mixture.numbers_per_row)

    def _log_prob(self, x: Tensor) -> Tensor:
        kernel = self._kernel(x)
        log_table, log_weight = self.mixture(self._values(kernel))
        by_component = (log_table + kernel[..., None, :]).logsumexp(-1)  # (B, N, M)
        return self.mixture.total(log_weight, by_component) - 0.5 * x.shape[-1] * x.shape[-2] * log(2 * pi)

    @torch.no_grad()
    def sample(self, shape: tuple[int, ...], context: None = None) -> Tensor:
        size, most = torch.Size(shape).numel(), 4 * self._points_at_once()  # a pass sees only a part of the variables
        parts = [self._sample(min(most, size - start)) for start in range(0, size, most)]
        return torch.cat(parts or [self._sample(0)]).view(*shape, *self.event_shape)

    def _sample(self, size: int) -> Tensor:
        points = self.centre.new_zeros(size, *self.event_shape)
        row = torch.arange(size, device=points.device)
        for g in range(self.mixture.groups):
            members, log_table, log_weight = self.mixture.of_group(self._values(self._kernel(points)), g)
            chosen = torch.multinomial(log_weight.exp(), 1)[:, 0]
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
        present = ~self.mixture.absent
        self.centre[present] = centre.to(self.centre)
        self.log_scale[present] = scale.log().to(self.log_scale)
        self.mixture.start(log_marginal)

    def _values(self, kernel: Tensor) -> Tensor:
        """What the network sees of each variable, (B, N, width)."""
        return torch.einsum("bnk,nkw->bnw", kernel.softmax(-1), self.embed)

    def _kernel(self, points: Tensor) -> Tensor:
        """log N(x_j; c_jk, s_jk) without its constant, (B, N, K); -inf for modes that a variable does not have."""
        z = (points[..., None, :] - self.centre) * (-self.log_scale).exp()
        return (-0.5 * z.square().sum(-1) - self.log_scale.sum(-1)).masked_fill(self.mixture.absent, -torch.inf)
