"""Coupling that knows the cells: variables move by mixtures with a bump in every cell, given the others' cells."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import logsigmoid

from tessella.bijections.base import Bijection
from tessella.bijections.elementwise import mixture_logit, mixture_quantile
from tessella.contracts import Regions
from tessella.nets.linear import Linear

LEAST = 1e-8  # variance of a bump at the start
JEFFREYS = 0.5  # rows that every category is given before counting
NOTHING = -1e4  # log weight of a bump that there is not; of sums of infinities there would be no gradients
HEAD = 0.5  # size of what a bump asks of a state, at the start

Move = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
Places = list[tuple[Tensor, Tensor]]  # middle and log scale of bumps, (K, n) each, for every coordinate


class CellBumps(nn.Module):
    """l_k(x) = prod_d l((x_d - x_kd) / s_kd - o_kd) / s_kd, l the logistic density: one in every cell k, close to x_k.

    It moves with the middle x_k of its cell; o and s are learned.

    Args:
        regions: of N variables, at most K categories each.
    """

    every: Tensor
    absent: Tensor

    def __init__(self, regions: Regions):
        super().__init__()
        self.regions = regions  # a geometry that is a module is a part of this one, too: its middles are learned
        variables, most = len(regions.counts), max(regions.counts)
        self.offset = nn.Parameter(torch.zeros(variables, most, regions.dim))
        self.log_scale = nn.Parameter(torch.zeros(variables, most, regions.dim))
        self.bias = nn.Parameter(torch.zeros(variables, most))
        count = torch.tensor(regions.counts)
        every = torch.arange(most)[:, None].minimum(count - 1)
        self.register_buffer("every", every, persistent=False)  # (K, N), the last one again where there is no more
        self.register_buffer("absent", torch.arange(most) >= count[:, None], persistent=False)  # (N, K)

    def middle(self) -> Tensor:
        """x_k, (N, K, D)."""
        return self.regions.centre(self.every).transpose(0, 1).to(self.offset)

    def places(self, variables: Tensor) -> tuple[Tensor, Tensor]:
        """x_k + o_k s_k and log s_k of the bumps of some variables, (D, K, n) each."""
        log_scale = self.log_scale.index_select(0, variables)
        centre = self.middle().index_select(0, variables) + self.offset.index_select(0, variables) * log_scale.exp()
        return centre.permute(2, 1, 0), log_scale.permute(2, 1, 0)

    @torch.no_grad()
    def start(self, x: Tensor) -> None:
        """Begin as points (B, N or more, D) lie: the mean and spread of those in each cell, and how many there are.

        Where there are none, a bump has the middle of its cell, and the mean spread of the others.
        """
        x = x[:, : len(self.absent)]
        held = functional.one_hot(self.regions.quantize(x), self.absent.shape[1]).to(self.offset)  # (B, N, K)
        middle, number, x = self.middle(), held.sum(0)[..., None], x.to(self.offset)
        mean = torch.einsum("bnk,bnd->nkd", held, x) / number.clamp_min(1)
        mean = torch.where(number > 1, mean, middle)
        apart = x - torch.einsum("bnk,nkd->bnd", held, mean)
        square = torch.einsum("bnk,bnd->nkd", held, apart.square())
        usual = square.sum(1, keepdim=True) / number.sum(1, keepdim=True)
        variance = torch.where(number > 1, square / number.clamp_min(1), usual).clamp_min(LEAST)
        self.log_scale.copy_(0.5 * (3 * variance / torch.pi**2).log())  # a logistic of scale s: (pi s)^2 / 3
        self.offset.copy_((mean - middle) * (-self.log_scale).exp())
        self.bias.copy_((number[..., 0] + JEFFREYS).log() - (len(x) + JEFFREYS * (~self.absent).sum(1)[:, None]).log())


class CellCoupling(Bijection):
    """y_V = T(x_V):  T carries sum_r pi_r prod_j sum_k w_rjk l_jk(x_j) to logistic distributions, j in V.

    A mixture of R components, in each of which the variables that move are independent mixtures of the bumps in their
    cells; pi and w are softmaxes of what a network says, given all other variables. T is triangular (Rosenblatt's):
    y_jd = logit F(x_jd | what comes before), where given other variables of V the components have new weights, and
    given other coordinates of a point its bumps have. So no network is asked again. What it is told about variables
    that lie in their cells is which, by an embedding, and where in it; of those that have moved, where they are now.

    Args:
        bumps: l_jk, of the first G variables; others, which lie in no cells, are shown as they are.
        variables: V, some of the first G.
        inside: variables that lie in their cells and are not yet to be moved; none of V.
        net: tokens (*batch, N, D + size), those of V first, and |V| -> states (*batch, |V|, width).
        size: of the embedding of a cell.
        width: of the states.
        number: N, at least G.
        components: R; with one, the variables are independent of each other given all others.
    """

    event_dim = 2
    order: Tensor
    inverse_order: Tensor
    first: Tensor
    told: Tensor

    def __init__(
        self,
        bumps: CellBumps,
        variables: Sequence[int],
        inside: Sequence[int],
        net: nn.Module,
        size: int,
        width: int,
        number: int,
        components: int = 1,
    ):
        super().__init__()
        if components < 1:
            raise ValueError(f"components: got {components}; expected at least 1")
        counts = bumps.regions.counts
        order = [*variables, *sorted({*range(number)} - {*variables})]
        count = torch.tensor(counts)
        for name, buffer in {
            "order": torch.tensor(order),
            "inverse_order": torch.tensor(order).argsort(),
            "first": count.cumsum(0) - count,
            "told": torch.tensor([[j in inside] for j in range(len(counts))]),
        }.items():
            self.register_buffer(name, buffer, persistent=False)
        self.bumps, self.net, self.moving = bumps, net, len(variables)
        self.embedding = nn.Embedding(sum(counts), size)
        self.head = nn.Parameter(HEAD * torch.randn(components, self.moving, max(counts), width))
        self.weigh = Linear(width, components) if components > 1 else None

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        log_pi, log_weight = self._conditional(x)
        own, places = self._own(x)
        log_pi = log_pi[..., None] + self._log_before(own, log_weight, places)  # (*batch, R, |V|)
        moved, log_slope = _carry(own, _over_components(log_pi, log_weight), places, mixture_logit, back=False)
        return self._with(x, moved), log_slope.sum((-1, -2))

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        log_pi, log_weight = self._conditional(y)
        own, places = self._own(y)
        moved, log_slopes = [], []
        together = 1 if self.weigh else self.moving  # one after another, where one tells of others
        for first in range(0, self.moving, together):
            at = slice(first, first + together)
            here, weight = [(centre[:, at], log_scale[:, at]) for centre, log_scale in places], log_weight[..., at]
            mixture = _over_components(log_pi[..., None], weight)
            point, log_slope = _carry(own[..., at, :], mixture, here, mixture_quantile, back=True)
            moved.append(point)
            log_slopes.append(log_slope)
            if self.weigh:
                log_pi = log_pi + _log_of_components(point, weight, here)[..., 0]
        return self._with(y, torch.cat(moved, -2)), -torch.cat(log_slopes, -2).sum((-1, -2))

    def _conditional(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """log pi (*batch, R) and log w (*batch, R, K, |V|), up to a number that all pi share."""
        states = self.net(self._tokens(x), first=self.moving)
        own = self.order[: self.moving]
        bias = self.bumps.bias.masked_fill(self.bumps.absent, NOTHING).index_select(0, own)
        logits = torch.einsum("...vw,rvkw->...rkv", states, self.head) + bias.T
        log_pi = states.new_zeros(*x.shape[:-2], 1) if self.weigh is None else self.weigh(states.mean(-2))
        return log_pi, logits.log_softmax(-2)

    def _own(self, x: Tensor) -> tuple[Tensor, Places]:
        """The points that move, (*batch, |V|, D), and for each coordinate the places of their bumps."""
        own = self.order[: self.moving]
        return x.index_select(-2, own), list(zip(*self.bumps.places(own), strict=True))

    def _log_before(self, x: Tensor, log_weight: Tensor, places: Places) -> Tensor:
        """log of what each component makes of the points before each, (*batch, R, |V|)."""
        if self.weigh is None:
            return x.new_zeros(())
        log_each = _log_of_components(x, log_weight, places)
        return log_each.cumsum(-1) - log_each

    def _tokens(self, x: Tensor) -> Tensor:
        """What the network is shown, those that move first, of whom it sees nothing."""
        regions = self.bumps.regions
        points, others = x.split([len(self.told), x.shape[-2] - len(self.told)], -2)
        with torch.no_grad():
            codes = regions.quantize(points)
        embedded = functional.pad(self.embedding(codes + self.first) * self.told, (0, 0, 0, others.shape[-2]))
        place = points - torch.where(self.told, regions.centre(codes).to(x.dtype), 0)
        tokens = torch.cat([torch.cat([place, others], -2), embedded], -1).index_select(-2, self.order)
        return functional.pad(tokens[..., self.moving :, :], (0, 0, self.moving, 0))

    def _with(self, x: Tensor, moved: Tensor) -> Tensor:
        others = x.index_select(-2, self.order[self.moving :])
        return torch.cat([moved, others], -2).index_select(-2, self.inverse_order)


def _carry(x: Tensor, log_weight: Tensor, places: Places, move: Move, back: bool) -> tuple[Tensor, Tensor]:
    """Points (*batch, n, D), one coordinate after another, under mixtures log w (*batch, K, n); log slopes of T."""
    coordinates: Sequence[Tensor] = x.unbind(-1)
    moved: list[Tensor] = []
    log_slopes: list[Tensor] = []
    for d, (value, place) in enumerate(zip(coordinates, places, strict=True)):
        if d:
            before = moved[d - 1] if back else coordinates[d - 1]
            log_weight = (log_weight + _log_logistic(before, *places[d - 1])).log_softmax(-2)
        new, log_slope = move(value, log_weight, *place)
        moved.append(new)
        log_slopes.append(log_slope)
    return torch.stack(moved, -1), torch.stack(log_slopes, -1)


def _over_components(log_pi: Tensor, log_weight: Tensor) -> Tensor:
    """log sum_r pi_r w_rk, normalised: pi (*batch, R, n), weights (*batch, R, K, n) -> (*batch, K, n)."""
    if log_weight.shape[-3] == 1:
        return log_weight.squeeze(-3)
    return (log_pi.log_softmax(-2)[..., None, :] + log_weight).logsumexp(-3)


def _log_of_components(x: Tensor, log_weight: Tensor, places: Places) -> Tensor:
    """log sum_k w_rk l_k(x): points (*batch, n, D), weights (*batch, R, K, n) -> (*batch, R, n)."""
    coordinates = zip(x.unbind(-1), places, strict=True)
    log_component = torch.stack([_log_logistic(value, *place) for value, place in coordinates]).sum(0)
    return (log_weight + log_component[..., None, :, :]).logsumexp(-2)


def _log_logistic(x: Tensor, centre: Tensor, log_scale: Tensor) -> Tensor:
    """log l_k of one coordinate: (*batch, n), places (K, n) -> (*batch, K, n)."""
    z = (x[..., None, :] - centre) * (-log_scale).exp()
    return logsigmoid(z) + logsigmoid(-z) - log_scale
