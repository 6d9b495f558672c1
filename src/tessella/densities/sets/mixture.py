"""A base density with a bump at every item, in which sets are of some kind and no item comes twice."""

from collections.abc import Iterator
from math import factorial, log, pi, prod

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.densities.sets.bases import SetBase
from tessella.densities.sets.kinds import KindsOfSets
from tessella.densities.sets.symmetric import draw_distinct, log_symmetric

TWICE = 1e-4  # share of the mass, at most, for sets in which items repeat: no point has density 0
MOST_DISTINCT = 4  # items of a set; there are 15 ways to part four places, and 52 to part five


class ItemMixture(SetBase):
    """p(x) = sum_m v_m sum_{different k_1..k_n} prod_j w_m(k_j) N(x_j; c_(k_j), diag s_(k_j)^2) / (n! e_n(w_m)).

    M kinds of sets. In each, items come on their own, none twice, and a point lies in the bump of its item. With the
    bumps inside cells, and narrow, this is `baselines.sets.BernoulliMixture`, seen through cells. `KindsOfSets` has the
    weights w.

    The sum over different items is taken by parting the n places: if those of a part hold the same item, sums over
    items factorise, and the signs of the Moebius function leave what has no item twice. A share of at most 1e-4 goes to
    sets with repetitions. Sets of more than 4 items may repeat them: `distinct` is then False, and what such sets have
    of the mass is lost to the bound.

    Args:
        kinds: of sets, and how likely the K items are in each.
        most: n, at most.
        dim: D.
    """

    def __init__(self, kinds: KindsOfSets, most: int, dim: int):
        super().__init__()
        items = len(kinds.bias)
        self.kinds, self.event_shape, self.distinct = kinds, (most, dim), most <= MOST_DISTINCT
        self.partings = signed_partings(most) if self.distinct else []
        self.parts = sorted({part for _, parting in self.partings for part in parting if len(part) > 1})
        self.centre = nn.Parameter(torch.randn(items, dim))
        self.log_scale = nn.Parameter(torch.zeros(items, dim))

    @torch.no_grad()
    def start(self, log_share: Tensor, sets: int, centre: Tensor, scale: Tensor) -> None:
        self.kinds.start(log_share, sets)
        for name, place, value in (
            ("centre", self.centre, centre),
            ("scale", self.log_scale, scale.log()),
        ):
            if value.shape != place.shape:
                raise ValueError(f"{name}: got shape {tuple(value.shape)}; expected {tuple(place.shape)}")
            checks.finite(name, value)
            place.copy_(value)

    def penalty(self) -> Tensor:
        return self.kinds.penalty()

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        z = (x[..., None, :] - self.centre) * (-self.log_scale).exp()
        kernel = -0.5 * z.square().sum(-1) - self.log_scale.sum(-1)  # (*batch, n, K)
        highest = kernel.detach().amax(-1, keepdim=True)
        exists = torch.ones_like(x[..., 0], dtype=torch.bool) if context is None else context[..., 0] > 0
        by_component = self._by_component((kernel - highest).exp(), exists)
        by_item = highest[..., 0] - 0.5 * x.shape[-1] * log(2 * pi)
        mixed = (by_component + self.kinds.log_kind).logsumexp(-1)
        return mixed + torch.where(exists, by_item, 0).sum(-1)

    def _by_component(self, bumps: Tensor, exists: Tensor) -> Tensor:
        """log density of each component, (*batch, M), for bumps (*batch, n, K)."""
        log_weight = self.kinds.log_weight
        alone = [_where(exists[..., j], bumps[..., j, :] @ log_weight.exp().mT, 1) for j in range(bumps.shape[-2])]
        if not self.distinct:  # a product of many would be 0 to single precision
            return torch.stack([one.clamp_min(torch.finfo(one.dtype).tiny).log() for one in alone]).sum(0)
        product = prod_of(alone)
        different = self._different(bumps, exists, alone, log_weight)
        most = bumps.shape[-2]
        sizes = torch.arange(most + 1, device=bumps.device, dtype=torch.float64)
        apart = (log_symmetric(log_weight, most) + (sizes + 1).lgamma()).exp()  # P(no item twice), (M, most + 1)
        total = (apart + TWICE).log().to(bumps).mT[exists.sum(-1)]
        return (different.clamp_min(0) + TWICE * product).log() - total  # below 0 by rounding only

    def _different(self, bumps: Tensor, exists: Tensor, alone: list[Tensor], log_weight: Tensor) -> Tensor:
        """Sum over different items, (*batch, M)."""
        together: dict[tuple[int, ...], Tensor] = {(j,): value for j, value in enumerate(alone)}
        for part in self.parts:
            same = prod_of([bumps[..., j, :] for j in part]) @ (len(part) * log_weight).exp().mT
            all_there = torch.stack([exists[..., j] for j in part]).all(0)
            together[part] = _where(all_there, same, 0)
        terms = [sign * prod_of([together[part] for part in parting]) for sign, parting in self.partings]
        return torch.stack(terms).sum(0)

    @torch.no_grad()
    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        most, dim = self.event_shape
        sets = torch.Size(shape).numel()
        sizes = torch.full((sets,), most, device=self.centre.device)
        if context is not None:
            sizes = (context[..., 0] > 0).sum(-1).expand(shape).reshape(-1)
        component = self.kinds.draw(sets)
        weight = self.kinds.log_weight
        items = torch.multinomial(weight.exp()[component], most, replacement=True)
        if self.distinct:
            apart = (log_symmetric(weight, most)[component, sizes] + (sizes + 1.0).lgamma()).exp()
            different = draw_distinct(weight, component, sizes, most)
            key = torch.rand(different.shape, device=sizes.device)
            key = key.masked_fill(torch.arange(most, device=sizes.device) >= sizes[:, None], 2)
            different = different.gather(1, key.argsort(1))  # in any order
            items = torch.where((torch.rand_like(apart) * (apart + TWICE) < apart)[:, None], different, items)
        noise = torch.randn(sets, most, dim, dtype=self.centre.dtype, device=sizes.device)
        points = torch.addcmul(self.centre[items], self.log_scale[items].exp(), noise)
        return points.view(*shape, most, dim)


def prod_of(factors: list[Tensor]) -> Tensor:
    """Elementwise."""
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


def _where(condition: Tensor, value: Tensor, otherwise: float) -> Tensor:
    return torch.where(condition[..., None], value, otherwise)


def signed_partings(places: int) -> list[tuple[int, tuple[tuple[int, ...], ...]]]:
    """All ways to part 0, ..., places - 1, each with its value of the Moebius function, prod (-1)^(b - 1) (b - 1)!.

    >>> signed_partings(2)
    [(-1, ((0, 1),)), (1, ((0,), (1,)))]
    """
    partings = [tuple(map(tuple, parting)) for parting in _parted(list(range(places)))]
    return [(prod((-1) ** (len(part) - 1) * factorial(len(part) - 1) for part in parts), parts) for parts in partings]


def _parted(places: list[int]) -> Iterator[list[list[int]]]:
    if not places:
        yield []
        return
    first, rest = places[0], places[1:]
    for parting in _parted(rest):
        for i, part in enumerate(parting):
            yield [*parting[:i], [first, *part], *parting[i + 1 :]]
        yield [[first], *parting]
