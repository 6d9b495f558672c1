"""Elementary symmetric polynomials: the weights of all sets of n items together."""

from collections import deque
from collections.abc import Iterator
from math import log

import torch
from torch import Tensor
from torch.nn import functional


def log_symmetric(log_weight: Tensor, most: int) -> Tensor:
    """log e_n(w) = log sum_{|S| = n} prod_{k in S} w_k: (*batch, K) -> (*batch, most + 1), for n = 0, ..., most.

    e_n is the coefficient of t^n in prod_k (1 + w_k t). The product is taken in pairs, in double precision: all terms
    are positive, so no digits cancel, and log K rounds do for K items. Weights are scaled to add up to `most`, so that
    neither e_n overflows nor the last of them is lost.

    >>> log_symmetric(torch.tensor([1.0, 2.0, 3.0]).log(), 2).exp().round()  # 1, 1 + 2 + 3, 2 + 3 + 6
    tensor([ 1.,  6., 11.], dtype=torch.float64)
    """
    weight, scale = _scaled(log_weight, most)
    (last,) = deque(_levels(weight, most), maxlen=1)
    polynomial = last[..., 0, : most + 1]
    polynomial = functional.pad(polynomial, (0, most + 1 - polynomial.shape[-1]))
    place = torch.arange(most + 1, device=weight.device)
    return polynomial.log() + scale * place


def _scaled(log_weight: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Weights that add up to `most`, and the logarithm of what they were divided by."""
    log_weight = log_weight.double()
    scale = log_weight.logsumexp(-1, keepdim=True) - log(max(most, 1))
    return (log_weight - scale).exp(), scale


def _levels(weight: Tensor, most: int) -> Iterator[Tensor]:
    """prod (1 + w_k t) of one item, of two neighbours, of four, ..., of all: (*batch, nodes, degree + 1) each."""
    size = 1 << max(0, (weight.shape[-1] - 1).bit_length())
    weight = functional.pad(weight, (0, size - weight.shape[-1]))
    polynomial = torch.stack([torch.ones_like(weight), weight], -1)
    yield polynomial
    while polynomial.shape[-2] > 1:
        polynomial = _product(polynomial[..., 0::2, :], polynomial[..., 1::2, :], most + 1)
        yield polynomial


def _product(left: Tensor, right: Tensor, terms: int) -> Tensor:
    """Of polynomials of equally many coefficients, the first `terms` of it."""
    degree = left.shape[-1]
    out = left.new_zeros(*left.shape[:-1], min(2 * degree - 1, terms))
    for i in range(min(degree, out.shape[-1])):
        upto = min(degree, out.shape[-1] - i)
        out = out + functional.pad(left[..., i : i + 1] * right[..., :upto], (i, out.shape[-1] - i - upto))
    return out


@torch.no_grad()
def draw_distinct(log_weight: Tensor, component: Tensor, sizes: Tensor, most: int) -> Tensor:
    """Sets of n items with probability prod w_k / e_n(w), (B, most); their order is the items' own, then padding 0.

    n items among all are j among the first half and n - j among the second with probability proportional to
    e_j(w_first) e_(n-j)(w_second); so on down to single items, for all sets at once. Memory is K log K for one
    component, whatever the number of sets.

    Args:
        log_weight: of the items in each component, (M, K).
        component: of each set, (B).
        sizes: n of each set, (B), at most `most` <= K.
    """
    items = torch.zeros(len(sizes), most, dtype=torch.int64, device=sizes.device)
    for m in component.unique().tolist():
        which = (component == m).nonzero()[:, 0]
        levels = list(_levels(_scaled(log_weight[m], most)[0], most))
        owner, found = _descend(levels, sizes[which])
        place = torch.arange(len(owner), device=sizes.device) - torch.searchsorted(owner, owner)
        items[which[owner], place] = found
    return items


def _descend(levels: list[Tensor], sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Sets and their items, sorted by both, one entry for each item."""
    owner = torch.arange(len(sizes), device=sizes.device)[sizes > 0]
    node, count = torch.zeros_like(owner), sizes[sizes > 0]
    for level in levels[-2::-1]:
        log_level, degree = level.log(), level.shape[-1] - 1
        other = count[:, None] - torch.arange(degree + 1, device=sizes.device)
        left, right = log_level[2 * node], log_level[2 * node + 1].gather(1, other.clamp(0, degree))
        chance = torch.where((other >= 0) & (other <= degree), left + right, -torch.inf)
        first = torch.multinomial(chance.softmax(1), 1)[:, 0] if len(node) else count
        owner, node = owner.repeat(2), torch.cat([2 * node, 2 * node + 1])
        count = torch.cat([first, count - first])
        owner, node, count = (part[count > 0] for part in (owner, node, count))
    order = (owner * len(levels[0]) + node).argsort()
    return owner[order], node[order]
