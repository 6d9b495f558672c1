"""Elementary symmetric polynomials: the weights of all sets of n items together."""

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
    log_weight = log_weight.double()
    scale = log_weight.logsumexp(-1, keepdim=True) - log(max(most, 1))
    weight = (log_weight - scale).exp()
    size = 1 << max(0, (weight.shape[-1] - 1).bit_length())
    weight = functional.pad(weight, (0, size - weight.shape[-1]))
    polynomial = torch.stack([torch.ones_like(weight), weight], -1)  # (*batch, size, degree + 1)
    while polynomial.shape[-2] > 1:
        left, right = polynomial[..., 0::2, :], polynomial[..., 1::2, :]
        polynomial = _product(left, right, most + 1)
    polynomial = polynomial[..., 0, : most + 1]
    polynomial = functional.pad(polynomial, (0, most + 1 - polynomial.shape[-1]))
    place = torch.arange(most + 1, device=weight.device)
    return polynomial.log() + scale * place


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

    Item by item, k is in with probability w_k e_(r-1)(w_(k+1), ...) / e_r(w_k, ...), r being how many are to come.

    Args:
        log_weight: of the items in each component, (M, K).
        component: of each set, (B).
        sizes: n of each set, (B), at most `most` <= K.
    """
    log_weight = log_weight.double()
    weight = (log_weight - log_weight.logsumexp(-1, keepdim=True)).exp() * max(most, 1)
    tables = [torch.zeros_like(weight[:, :1]).repeat(1, most + 1)]
    tables[0][:, 0] = 1
    for k in range(weight.shape[1] - 1, -1, -1):
        after = tables[-1]
        tables.append(after + weight[:, k : k + 1] * functional.pad(after[:, :-1], (1, 0)))
    tables.reverse()  # tables[k]: of the items k, k + 1, ...
    left, row = sizes.clone(), torch.arange(len(sizes), device=sizes.device)
    items = torch.zeros(len(sizes), most, dtype=torch.int64, device=sizes.device)
    for k in range(weight.shape[1]):
        take = weight[component, k] * tables[k + 1][component, (left - 1).clamp_min(0)] / tables[k][component, left]
        chosen = (left > 0) & (torch.rand_like(take) < take)
        place = (sizes - left).clamp_max(most - 1)
        items[row, place] = torch.where(chosen, k, items[row, place])
        left = left - chosen.long()
    return items
