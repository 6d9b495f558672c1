"""Mixtures of baskets by expectation and maximisation, over the items that are there and no others."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tessella.baselines.sets.baskets import BasketMixture, chunks
from tessella.data.itemsets.shape import SetShape
from tessella.data.sources import PaddedSets
from tessella.densities.sets.sizes import PSEUDO_SETS
from tessella.densities.sets.symmetric import log_symmetric

PSEUDO_ITEMS = 0.5
PSEUDO_BASKETS = 20.0  # of the whole, that each kind has seen besides its own
CLOSE, ROUNDS = 1e-8, 100
RARE = 10.0  # an item that is expected less often has most of its weight from the prior
JITTER = 1.0  # of the logarithms of weights, where a kind is split


@dataclass(frozen=True)
class Seen:
    """How often each kind has each item, (M, K), and each size, (M, most + 1)."""

    items: Tensor
    sizes: Tensor


@torch.no_grad()
def independent(sets: PaddedSets, shape: SetShape) -> BasketMixture:
    """One kind, of maximum likelihood; each item and each size was seen half a time more than it was.

    Sizes beyond the largest were seen half a time together.
    """
    model, place = BasketMixture(shape).to(sets.items.device), torch.arange(shape.most + 1, device=sets.items.device)
    sizes = torch.bincount(sets.offsets.diff(), minlength=shape.most + 1).double()
    items = torch.bincount(sets.items, minlength=shape.items).double() + PSEUDO_ITEMS
    seen = Seen((items * len(sets.items) / items.sum())[None], sizes[None])
    largest = int(sizes.nonzero().max())
    pseudo = torch.where(place <= largest, PSEUDO_SETS, PSEUDO_SETS / max(1, shape.most - largest))
    possible = torch.where(place >= shape.least, sizes + pseudo, 0)
    model.log_weight.copy_(seen.items.log())
    model.log_size.copy_((possible / possible.sum()).log())
    for _ in range(ROUNDS):
        if _scale(model, seen, model.log_weight.clone(), 0.0) < CLOSE:
            break
    return model


@torch.no_grad()
def split(model: BasketMixture, generator: torch.Generator) -> BasketMixture:
    """Twice as many kinds, in pairs whose weights differ at random."""
    twice = BasketMixture(model.shape, 2 * model.components).to(model.log_weight.device)
    noise = JITTER * torch.randn(model.log_weight.shape, generator=generator, dtype=torch.float64).to(model.log_weight)
    twice.log_weight.copy_(torch.cat([model.log_weight + noise, model.log_weight - noise]))
    twice.log_size.copy_(model.log_size.repeat(2, 1))
    twice.log_kind.copy_(model.log_kind.repeat(2).log_softmax(0))
    return twice


@torch.no_grad()
def improve(model: BasketMixture, sets: PaddedSets, whole: BasketMixture, prior: float) -> None:
    """One round: which kind each set is of, then what the kinds are of.

    How much more frequent an item is in a kind than in the whole has a gamma prior, of `prior` observations: an item
    that was seen once says little about the kind that it was seen in. The prior's mean is the kind's own, that of all
    rare items together: small baskets hold fewer of them than large ones.

    Args:
        model: is changed.
        sets: to learn from.
        whole: their independent model.
        prior: observations of each item in each kind, as frequent as in the whole.
    """
    seen = _expected(model, sets)
    kinds = seen.sizes.sum(1) + PSEUDO_BASKETS
    sizes = seen.sizes + PSEUDO_BASKETS * whole.log_size.exp()
    model.log_kind.copy_((kinds / kinds.sum()).log())
    model.log_size.copy_((sizes / sizes.sum(1, keepdim=True)).log())
    _scale(model, seen, whole.log_weight, prior)


def _expected(model: BasketMixture, sets: PaddedSets) -> Seen:
    """Each set is of each kind by the probability of that."""
    kinds, shape = model.components, model.shape
    items = model.log_weight.new_zeros(shape.items, kinds)
    sizes = model.log_weight.new_zeros(shape.most + 1, kinds)
    for part, offsets in chunks(sets.items, sets.offsets, kinds):
        share, size = model.log_joint(part, offsets).softmax(1), offsets.diff()
        items.index_add_(0, part, share.repeat_interleave(size, 0))
        sizes.index_add_(0, size, share)
    return Seen(items.mT, sizes.mT)


def _scale(model: BasketMixture, seen: Seen, whole: Tensor, prior: float) -> float:
    """Weights times what was seen over what is expected, which at the maximum agree; the largest step.

    The derivative of log e_n in log w_k is the probability that a set of n items has k. The prior adds as much to both
    where an item is as frequent as rare ones are; weights have no unit, and their mean over the whole is the whole's.
    """
    largest, first, share = 0.0, 0, whole.log_softmax(1)
    for weight in model.pieces():
        part = slice(first, first + len(weight))
        with torch.enable_grad():
            free = weight.clone().requires_grad_()
            total = (seen.sizes[part] * log_symmetric(free, model.shape.most)).sum()
            (expected,) = torch.autograd.grad(total, free)
        lift = weight - whole
        plain = expected * (-lift).exp()  # at a lift of 1
        rare = plain < RARE
        level = ((seen.items[part] * rare).sum(1) + 1) / ((plain * rare).sum(1) + 1)
        new = (seen.items[part] + prior).log() - (plain + prior / level[:, None]).log()
        step = new - (new + share).logsumexp(1, keepdim=True) - lift
        weight += step  # a view of the model's
        largest, first = max(largest, float(step.abs().max())), first + len(weight)
    model.changed()
    return largest
