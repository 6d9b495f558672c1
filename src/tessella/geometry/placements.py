"""Where anchors start. Fixed there, they recover the cells of the classical dequantizers (Figure 3 of the paper).

| placement | cells | relative |
|---|---|---|
| `line` | slabs across a line, in order | ordinal dequantization |
| `simplex` | cones around the vertices of a regular simplex | simplex and argmax dequantization |
| `hypercube` | orthants (when K = 2^D) | binary argmax dequantization |
| `random` | anything: the place to start learning from | Voronoi dequantization |
"""

from collections.abc import Callable
from math import ceil, log2, sqrt

import torch
from torch import Generator, Tensor

Placement = Callable[[int, int, Generator | None], Tensor]


def random(cells: int, dim: int, generator: Generator | None = None) -> Tensor:
    """x_k ~ N(0, I), (cells, dim)."""
    return torch.randn(cells, dim, generator=generator)


def line(cells: int, dim: int, generator: Generator | None = None) -> Tensor:
    """x_k = (k - (K - 1) / 2) e_1, one unit apart, in order.

    >>> line(3, 2)
    tensor([[-1.,  0.],
            [ 0.,  0.],
            [ 1.,  0.]])
    """
    points = torch.zeros(cells, dim)
    points[:, 0] = torch.arange(cells) - (cells - 1) / 2
    return points


def simplex(cells: int, dim: int, generator: Generator | None = None) -> Tensor:
    """x_k . x_k = 1 and x_i . x_k = -1 / (K - 1): vertices of a regular simplex, in the first K - 1 dimensions.

    Built by height: after the vertices 0 .. j - 1 are placed, vertex j rises along axis j and all later ones share a
    coordinate there that makes the inner products right.
    """
    if dim < cells - 1:
        raise ValueError(f"dim: got {dim}; expected at least {cells - 1} for the {cells} vertices of a simplex")
    points = torch.zeros(cells, dim)
    for j in range(cells - 1):
        height = sqrt(1 - float(points[j, :j].square().sum()))
        points[j, j] = height
        points[j + 1 :, j] = (-1 / (cells - 1) - points[j + 1 :, :j] @ points[j, :j]) / height
    return points


def hypercube(cells: int, dim: int, generator: Generator | None = None) -> Tensor:
    """x_kj = +1 if bit j of k is set, else -1: the corners of a cube, numbered in binary.

    >>> hypercube(4, 2)
    tensor([[-1., -1.],
            [ 1., -1.],
            [-1.,  1.],
            [ 1.,  1.]])
    """
    bits = binary_dim(cells)
    if dim < bits:
        raise ValueError(f"dim: got {dim}; expected at least ceil(log2 {cells}) = {bits} for {cells} corners of a cube")
    corners = (torch.arange(cells)[:, None] >> torch.arange(dim)) & 1
    return (2.0 * corners - 1.0) * (torch.arange(dim) < bits)


def binary_dim(cells: int) -> int:
    """Number of binary digits that tell `cells` categories apart (at least one)."""
    return max(1, ceil(log2(cells)))


PLACEMENTS: dict[str, Placement] = {"random": random, "line": line, "simplex": simplex, "hypercube": hypercube}
