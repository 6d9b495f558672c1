"""Flows of sets: a base that no order changes, seen through maps that are permuted as the items are."""

from torch import Tensor

from tessella.bijections import (
    AFFINE,
    Bijection,
    Chain,
    ContextAffine,
    Coupling,
    Invert,
    ItemNetwork,
    Items,
    LinearLU,
    LogisticMixture,
    partitions,
)
from tessella.densities.base import Density
from tessella.densities.sets.bases import GaussianItems, SetBase
from tessella.nets import Transformer
from tessella.nets.linear import Linear
from tessella.nets.mlp import zero


class SetFlowDensity(Density):
    """log p(x) = log base(f(x)) + ladj: exchangeable, as f is permuted as its items are.

    Args:
        base: of the items' points.
        bijection: from data to noise, of event_dim 2; None: none.
    """

    def __init__(self, base: SetBase, bijection: Bijection | None):
        super().__init__()
        self.base, self.bijection = base, bijection
        self.event_shape = base.event_shape

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        if self.bijection is None:
            return self.base.log_prob(x, context)
        u, ladj = self.bijection.forward_and_ladj(x, context)
        return self.base.log_prob(u, context) + ladj

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        u = self.base.sample(shape, context)
        return u if self.bijection is None else self.bijection.inverse_and_ladj(u, context)[0]

    def sample_and_log_prob(self, shape: tuple[int, ...], context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        u = self.base.sample(shape, context)
        if self.bijection is None:
            return u, self.base.log_prob(u, context)
        x, ladj = self.bijection.inverse_and_ladj(u, context)
        return x, self.base.log_prob(u, context) - ladj


def item_couplings(
    dim: int,
    blocks: int,
    width: int,
    layers: int,
    logistics: int = 0,
    linear: bool = False,
    context: int = 0,
    fast: bool = False,
) -> list[Bijection]:
    """Coupling of half of every item's coordinates given the other half of all items: attention without positions.

    Args:
        dim: D, at least 2.
        blocks, width, layers, logistics, linear, fast: as in `token_flow`.
        context: what is known of each item, so many numbers.
    """
    if dim < 2:
        raise ValueError(f"dim: got {dim}; expected at least 2 for couplings, which halve it")
    move = LogisticMixture(logistics) if logistics else AFFINE
    parts: list[Bijection] = []
    for block in range(blocks):
        keep = partitions(dim)[block % len(partitions(dim))]
        outputs = move.coefficients * (dim - len(keep))
        net = Transformer(len(keep), outputs, width, layers, positions=None, context=context, fast=fast)
        parts += [Items(LinearLU(dim))] if linear and block else []
        parts.append(Items(Coupling(dim, keep, ItemNetwork(net), 1, move)))
    return parts


def item_noise(most: int, dim: int, blocks: int, width: int, layers: int, context: int, fast: bool) -> SetFlowDensity:
    """q(u | what is known of the items): a conditional Gaussian, then conditional couplings; the Gaussian at first."""
    first: Bijection = Items(ContextAffine(zero(Linear(1 + context, 2 * dim))))
    rest = item_couplings(dim, blocks, width, layers, context=context, fast=fast)
    return SetFlowDensity(GaussianItems(most, dim), Invert(Chain(first, *rest)))
