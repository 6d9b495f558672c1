"""Anchors put into their box by one Triton kernel: centre + radius tanh(free), a little less, single precision.

As `Tessellation.anchors`, for whoever needs no gradient of it or has it by hand: as rows (G, K, D), as they are kept,
or as columns for `search_triton`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tessella.geometry.launches import Launch
from tessella.geometry.tessellation import KEPT_FROM_WALL

WARPS = 4
BLOCK = 256  # coordinates, of rows
CELLS = 1024  # of columns
KEPT = tl.constexpr(KEPT_FROM_WALL)


def placed_rows(free: Tensor, centre: Tensor | None, log_radius: Tensor) -> Tensor:
    """([N,] K, D), from as much of free."""
    anchors = torch.empty_like(free)
    sizes, constants = (free.numel(), free.shape[-2]), (free.shape[-1], log_radius.dim() == 2, BLOCK)
    ROWS((-(-free.numel() // BLOCK), 1, 1), (free, centre, log_radius, anchors), sizes, constants, WARPS)
    return anchors


def placed_columns(free: Tensor, centre: Tensor | None, log_radius: Tensor | None, groups: int, pitch: int) -> Tensor:
    """(G, D, pitch) from ([N,] K, D), infinite beyond the last cell; without a box, as they are."""
    cells, dim = free.shape[-2:]
    anchors = free.new_empty(groups, dim, pitch)
    tensors = tuple(part if part is None else part.contiguous() for part in (free, centre, log_radius))
    constants = dim, log_radius is not None and log_radius.dim() == 2, CELLS
    COLUMNS((groups * dim, -(-pitch // CELLS), 1), (*tensors, anchors), (cells, pitch), constants, WARPS)
    return anchors


@triton.jit
def expm1(u):
    """exp(u) - 1, by its series for small u."""
    near = u * (1 + u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5 * (1 + u / 6 * (1 + u / 7 * (1 + u / 8)))))))
    return tl.where(tl.abs(u) < 0.4, near, tl.exp(u) - 1)


@triton.jit
def tanh(u):
    """Of u, by expm1: no digit is lost near 0."""
    t = expm1(-2 * tl.abs(u))
    return tl.where(u < 0, t, -t) / (2 + t)


@triton.jit(do_not_specialize=["many", "K"])
def _rows(free, centre, log_radius, anchors, many, K, D: tl.constexpr, BOXES: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    box = at // (K * D) * D + at % D if BOXES else at % D
    radius = tl.exp(tl.load(log_radius + box, mask=at < many, other=0)) * (1 - KEPT)
    middle = tl.load(centre + box, mask=at < many, other=0)
    tl.store(anchors + at, middle + radius * tanh(tl.load(free + at, mask=at < many, other=0)), mask=at < many)


@triton.jit(do_not_specialize=["K"])
def _columns(free, centre, log_radius, anchors, K, pitch, D: tl.constexpr, BOXES: tl.constexpr, CELLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1).to(tl.int64) * CELLS + tl.arange(0, CELLS)
    g, d = row // D, row % D
    value = tl.load(free + (g * K + k) * D + d, mask=k < K, other=0)
    if log_radius is not None:
        box = row if BOXES else d
        value = tl.load(centre + box) + tl.exp(tl.load(log_radius + box)) * (1 - KEPT) * tanh(value)
    tl.store(anchors + row * pitch + k, tl.where(k < K, value, float("inf")), mask=k < pitch)


ROWS, COLUMNS = Launch(_rows), Launch(_columns)
