"""Counts of pairs, mutual information, and the tree that keeps most of it."""

from collections.abc import Sequence
from math import log

import torch
from torch import Tensor

KEYS = 2**22  # pairs that are counted at once
DENSE = 2**16  # pairs of categories that are counted in a dense table even when there are fewer rows


def pair_counts(a: Tensor, b: Tensor, count_a: int, count_b: int) -> tuple[Tensor, Tensor]:
    """The keys a * count_b + b that occur, sorted, and how often; only these are held when there are many."""
    key = a * count_b + b
    if count_a * count_b > max(DENSE, len(key)):
        keys, counts = torch.unique(key, return_counts=True)
        return keys, counts
    dense = torch.bincount(key)
    occurring = dense.nonzero().flatten()
    return occurring, dense[occurring]


def mutual_information(codes: Tensor, counts: Sequence[int]) -> Tensor:
    """I(a; b) = H(a) + H(b) - H(a, b) of the empirical distribution, in nats, for all pairs of columns: (N, N).

    >>> mutual_information(torch.tensor([[0, 0, 1], [1, 1, 1]]), (2, 2, 2))
    tensor([[0.6931, 0.6931, 0.0000],
            [0.6931, 0.6931, 0.0000],
            [0.0000, 0.0000, 0.0000]], dtype=torch.float64)
    """
    columns, sizes = codes.long().T.contiguous(), torch.tensor(counts, device=codes.device)
    entropy = torch.stack([_entropy(torch.bincount(column)) for column in columns])
    joint, at_once = entropy.diag(), max(1, KEYS // max(1, len(codes)))
    for i in range(1, len(counts)):
        pairs = zip(columns[:i].split(at_once), sizes[:i].split(at_once), strict=True)
        joint[i, :i] = joint[:i, i] = torch.cat([_joint_entropies(*pair, columns[i], counts[i]) for pair in pairs])
    return (entropy + entropy[:, None] - joint).clamp_min(0)


def _joint_entropies(columns: Tensor, sizes: Tensor, other: Tensor, size: int) -> Tensor:
    """H(a, b) of several columns a, (n, B), with sizes (n), and one other b, (B): (n)."""
    first = sizes.cumsum(0) - sizes
    keys, n = pair_counts((columns + first[:, None]).flatten(), other.repeat(len(columns)), int(sizes.sum()), size)
    owner, n = torch.searchsorted(first, keys // size, right=True) - 1, n.double()
    spread = torch.zeros(len(columns), dtype=torch.float64, device=n.device)
    return log(len(other)) - spread.index_add_(0, owner, torch.special.xlogy(n, n)) / len(other)


def maximum_spanning_tree(weight: Tensor) -> tuple[list[int], list[int]]:
    """Parent of every vertex (-1 for vertex 0, the root), and an order with parents first. Prim's algorithm.

    >>> maximum_spanning_tree(torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]))
    ([-1, 2, 0], [0, 2, 1])
    """
    parent, order = [-1] * len(weight), [0]
    best, link = weight[0].clone(), [0] * len(weight)  # the heaviest edge from each vertex to the tree, and its end
    best[0] = -torch.inf
    while len(order) < len(weight):
        vertex = int(best.argmax())
        parent[vertex] = link[vertex]
        order.append(vertex)
        for other in (weight[vertex] > best).nonzero().flatten().tolist():
            if other not in order:
                best[other], link[other] = weight[vertex, other], vertex
        best[vertex] = -torch.inf
    return parent, order


def _entropy(n: Tensor) -> Tensor:
    """log n - sum n_k log n_k / n, for counts n_k."""
    n = n.double()
    entropy: Tensor = n.sum().log() - torch.special.xlogy(n, n).sum() / n.sum()
    return entropy
