"""The searches of `search.py` as Triton kernels: same answers, nothing of size (M, K) in memory.

A program takes a tile of points and walks along its share of the cells. In a tile, points run along the lanes and cells
along the registers of every lane: a coordinate of an anchor is one load for all lanes, one of a point one for all cells
of the tile. Scores are sums over differences of coordinates, never differences of sums, in single precision at least.
The best so far stays in registers: of walls the best score for each point and row of the tile, reduced once, at the
end; of distances the best two tiles for each point, whose cells are measured again in double precision. Where there are
few points, several programs share the cells, and their winners are compared afterwards.

Traps. Offsets that may exceed 32 bits (of tiles, and of tessellations side by side) are added to pointers in 64. An
anchor beyond the last one is infinite: so is its distance, and its wall is NaN, which is never the better score. A tile
of cells that do not exist, by their weights, is skipped. M must not be specialized: knowing that rows are aligned,
Triton loads several points at once, in an order that every use then has to undo through shared memory. Tiles and
unrolling were chosen by trials on an H200: what is a little larger or smaller can take much longer.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

from tessella.geometry.launches import Launch
from tessella.geometry.placing_triton import placed_columns


class Tile(NamedTuple):
    """What a program takes at once."""

    warps: int
    points: int
    """of each thread"""
    cells: int
    steps: int
    """dimensions that are unrolled, at most"""


SHORT = Tile(warps=4, points=1, cells=16, steps=4)
LONG_WALLS = Tile(warps=2, points=4, cells=8, steps=8)
LONG_NEAREST = Tile(warps=2, points=4, cells=16, steps=8)
LONG = 2**22  # pairs of points and cells from which on a search is long
WHOLE = 16  # shares of the cells are multiples of it
PICKED = 32  # points that a program looks through the shares for
PROGRAMS = 1536  # four for each place on a GPU; with fewer, programs share the cells
CELLS = 256  # that a program has to itself before another one shares them
NOBODY = tl.constexpr(2**31 - 1)
TINY = tl.constexpr(torch.finfo(torch.float32).tiny)


def active_wall(y: Tensor, cell: Tensor, anchors: Tensor, weights: Tensor | None = None) -> Tensor:
    """argmax_i n_i . y  with  n_i = 2 (x_i - x_k) / (|x_i - x_k|^2 - w_i + w_k)  and  k = cell: (G, M).

    Arguments as in `search.active_wall`. Among walls whose values agree to rounding, any may be the answer.
    """
    groups, dim, points = y.shape
    y, cell = y.contiguous(), cell.contiguous()
    here = anchors.gather(2, cell[:, None].expand(groups, dim, points))
    own = None if weights is None else weights.gather(1, cell)
    plan = _Plan(points, groups, dim, anchors.shape[-1], LONG_WALLS)
    value, index = plan.room(y.device, _accumulator(y))
    if points:
        plan.launch(WALLS, y, here, cell, plan.padded(anchors), weights, own, value, index)
    return _winner(value, index)


def nearest_anchor(x: Tensor, anchors: Tensor, weights: Tensor | None = None) -> Tensor:
    """argmin_i |x - x_i|^2 - w_i: (G, M). Arguments as in `search.nearest_anchor`.

    The two best tiles are found in single precision, and all their cells measured again in double: near anchors that
    are far from a point differ in digits that single precision does not have.
    """
    groups, dim, points = x.shape
    plan = _Plan(points, groups, dim, anchors.shape[-1], LONG_NEAREST)
    return _nearest_of(plan, x, plan.padded(anchors), weights)


def nearest_placed(
    x: Tensor, free: Tensor, centre: Tensor | None, log_radius: Tensor | None, weights: Tensor | None
) -> Tensor:
    """`nearest_anchor` among anchors that are put into their box before: the arguments are `Tessellation.parts`."""
    groups, dim, points = x.shape
    plan = _Plan(points, groups, dim, free.shape[-2], LONG_NEAREST)
    return _nearest_of(plan, x, placed_columns(free, centre, log_radius, groups, plan.pitch), weights)


def _nearest_of(plan: "_Plan", x: Tensor, anchors: Tensor, weights: Tensor | None) -> Tensor:
    groups, _, points = x.shape
    near = torch.empty((groups, points), dtype=torch.int64, device=x.device)
    if not points:
        return near
    x, alone = x.contiguous(), plan.grid[1] == 1
    value, tile = (None, None) if alone else plan.room(x.device, _accumulator(x), torch.int32, 2)
    plan.launch(NEAREST, x, anchors, weights, value, tile, near)
    if not alone:
        grid = -(-points // PICKED), groups, 1
        sizes = points, plan.sizes[1], plan.pitch, plan.grid[1]
        PICK(grid, (x, anchors, weights, value, tile, near), sizes, (x.shape[1], PICKED, plan.constants[3]), 1)
    return near


class _Plan:
    """How points and cells are shared among programs.

    Args:
        points: M.
        groups: G.
        dim: D.
        cells: K.
        long: the tile of a long search.

    Attributes:
        pitch: from one row of anchors to the next: K, in whole tiles where the search is long enough to gain from it.
        grid: tiles of points, shares of the cells, tessellations.
        sizes, constants, warps: what both kernels take.
    """

    def __init__(self, points: int, groups: int, dim: int, cells: int, long: Tile):
        is_long = groups * points * cells >= LONG
        tile = long if is_long else SHORT
        lanes, rows = 32 * tile.warps * tile.points, min(tile.cells, 1 << (cells - 1).bit_length())
        self.pitch, blocks = cells + (-cells % WHOLE if is_long else 0), -(-points // lanes)
        shares = max(1, min(PROGRAMS // max(1, groups * blocks), cells // CELLS))
        share = -(-cells // shares // WHOLE) * WHOLE
        self.grid = (blocks, -(-cells // share), groups)
        steps = max(step for step in range(1, tile.steps + 1) if dim % step == 0)
        self.sizes = points, cells, self.pitch, share
        self.constants = dim, steps, lanes, rows, self.pitch % rows == 0, points % lanes == 0
        self.warps = tile.warps

    def padded(self, anchors: Tensor) -> Tensor:
        """(G, D, K) -> (G, D, pitch), infinite beyond the last cell."""
        missing = self.pitch - anchors.shape[-1]
        return functional.pad(anchors, (0, missing), value=torch.inf) if missing else anchors.contiguous()

    def launch(self, kernel: Launch, *tensors: Tensor | None) -> None:
        kernel(self.grid, tensors, self.sizes, self.constants, self.warps)

    def room(
        self, device: torch.device, score: torch.dtype, index: torch.dtype = torch.int64, best: int = 1
    ) -> tuple[Tensor, Tensor]:
        """For the best scores of every point in every share of the cells, and for whose they are: (G, S best, M)."""
        shape = (self.grid[2], self.grid[1] * best, self.sizes[0])
        return torch.empty(shape, dtype=score, device=device), torch.empty(shape, dtype=index, device=device)


def _accumulator(points: Tensor) -> torch.dtype:
    return torch.float64 if points.dtype == torch.float64 else torch.float32


def _winner(value: Tensor, index: Tensor) -> Tensor:
    """The index with the largest value over the shares: (G, S, M) -> (G, M)."""
    if value.shape[1] == 1:
        return index[:, 0]
    return index.gather(1, value.max(1, keepdim=True).indices)[:, 0]


@triton.jit
def _tile(at, offsets, room, WHOLE: tl.constexpr, other: tl.constexpr, ACC: tl.constexpr):
    """One coordinate of a tile of anchors or points, in the precision of the sums."""
    values = tl.load(at + offsets) if WHOLE else tl.load(at + offsets, mask=offsets < room, other=other)
    return values.to(ACC)


@triton.jit(do_not_specialize=["M", "K"])
def _walls(
    y,
    here,
    cell,
    anchors,
    weights,
    own,
    value,
    index,
    M,
    K,
    pitch,
    share,
    D: tl.constexpr,
    STEPS: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
    CELLS_WHOLE: tl.constexpr,
    POINTS_WHOLE: tl.constexpr,
):
    ACC: tl.constexpr = value.dtype.element_ty
    tile, part, g = tl.program_id(0).to(tl.int64) * LANES, tl.program_id(1), tl.program_id(2).to(tl.int64)
    rows, lanes = tl.arange(0, ROWS), tl.arange(0, LANES)
    alive = lanes < M - tile
    y += g * D * M + tile
    here += g * D * M + tile
    anchors += g * D * pitch
    best = tl.zeros((ROWS, LANES), ACC)
    found = tl.zeros((ROWS, LANES), tl.int32)
    for start in range(part * share, tl.minimum(K, part * share + share), ROWS):
        exists = True
        if weights is not None:
            w = tl.load(weights + g * K + start + rows, mask=rows < K - start, other=-float("inf")).to(ACC)
            exists = tl.max(w, 0) > -float("inf")
        if exists:
            ahead = tl.zeros((ROWS, LANES), ACC)
            margin = tl.zeros((ROWS, LANES), ACC)
            there, here_d, y_d = anchors + start, here, y
            for _ in range(0, D, STEPS):
                for _ in tl.static_range(STEPS):
                    anchor = _tile(there, rows, K - start, CELLS_WHOLE, float("inf"), ACC)
                    gap = anchor[:, None] - _tile(here_d, lanes, M - tile, POINTS_WHOLE, 0.0, ACC)[None, :]
                    ahead += gap * _tile(y_d, lanes, M - tile, POINTS_WHOLE, 0.0, ACC)[None, :]
                    margin += gap * gap
                    there += pitch
                    here_d += M
                    y_d += M
            if weights is not None:
                margin += tl.load(own + g * M + tile + lanes, mask=alive, other=0).to(ACC)[None, :] - w[:, None]
            root = tl.rsqrt(margin)  # two multiplications are less than a division
            score = ahead * root * root
            better = (margin > TINY) & (score > best)
            best = tl.where(better, score, best)
            found = tl.where(better, start, found)
    top = tl.max(best, 0)
    wall = tl.min(tl.where(best == top[None, :], found + rows[:, None], NOBODY), 0).to(tl.int64)
    wall = tl.where(top > 0, wall, tl.load(cell + g * M + tile + lanes, mask=alive, other=0))
    at = (g * tl.num_programs(1) + part) * M + tile + lanes
    tl.store(value + at, top, mask=alive)
    tl.store(index + at, wall, mask=alive)


@triton.jit(do_not_specialize=["M", "K"])
def _nearest(
    x,
    anchors,
    weights,
    value,
    tile_of,
    near,
    M,
    K,
    pitch,
    share,
    D: tl.constexpr,
    STEPS: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
    CELLS_WHOLE: tl.constexpr,
    POINTS_WHOLE: tl.constexpr,
):
    ACC: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    tile, part, g = tl.program_id(0).to(tl.int64) * LANES, tl.program_id(1), tl.program_id(2).to(tl.int64)
    rows, lanes = tl.arange(0, ROWS), tl.arange(0, LANES)
    alive = lanes < M - tile
    x += g * D * M + tile
    anchors += g * D * pitch
    if weights is not None:
        weights += g * K
    best = tl.full((LANES,), float("inf"), ACC)
    second = best
    best_at = tl.zeros((LANES,), tl.int32) + part * share
    second_at = best_at
    for start in range(part * share, tl.minimum(K, part * share + share), ROWS):
        exists = True
        if weights is not None:
            w = tl.load(weights + start + rows, mask=rows < K - start, other=-float("inf")).to(ACC)
            exists = tl.max(w, 0) > -float("inf")
        if exists:
            power = tl.zeros((ROWS, LANES), ACC)
            there, x_d = anchors + start, x
            for _ in range(0, D, STEPS):
                for _ in tl.static_range(STEPS):
                    anchor = _tile(there, rows, K - start, CELLS_WHOLE, float("inf"), ACC)
                    gap = anchor[:, None] - _tile(x_d, lanes, M - tile, POINTS_WHOLE, 0.0, ACC)[None, :]
                    power += gap * gap
                    there += pitch
                    x_d += M
            if weights is not None:
                power -= w[:, None]
            best, best_at, second, second_at = _best_two(best, best_at, second, second_at, tl.min(power, 0), start)
    if value is None:
        found = _measured(x, anchors, weights, best_at, second_at, lanes, alive, M, K, pitch, D, ROWS)
        tl.store(near + g * M + tile + lanes, found, mask=alive)
    else:
        at = (g * tl.num_programs(1) + part) * 2 * M + tile + lanes
        tl.store(value + at, best, mask=alive)
        tl.store(value + at + M, second, mask=alive)
        tl.store(tile_of + at, best_at, mask=alive)
        tl.store(tile_of + at + M, second_at, mask=alive)


@triton.jit(do_not_specialize=["M", "K", "shares"])
def _pick(
    x,
    anchors,
    weights,
    value,
    tile_of,
    near,
    M,
    K,
    pitch,
    shares,
    D: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
):
    tile, g = tl.program_id(0).to(tl.int64) * LANES, tl.program_id(1).to(tl.int64)
    lanes = tl.arange(0, LANES)
    alive = lanes < M - tile
    value += 2 * g * shares * M + tile
    tile_of += 2 * g * shares * M + tile
    best = tl.full((LANES,), float("inf"), value.dtype.element_ty)
    second = best
    best_at = tl.zeros((LANES,), tl.int32)
    second_at = best_at
    for _ in range(2 * shares):
        power = tl.load(value + lanes, mask=alive, other=0)
        start = tl.load(tile_of + lanes, mask=alive, other=0)
        best, best_at, second, second_at = _best_two(best, best_at, second, second_at, power, start)
        value += M
        tile_of += M
    x += g * D * M + tile
    anchors += g * D * pitch
    if weights is not None:
        weights += g * K
    found = _measured(x, anchors, weights, best_at, second_at, lanes, alive, M, K, pitch, D, ROWS)
    tl.store(near + g * M + tile + lanes, found, mask=alive)


@triton.jit
def _best_two(best, best_at, second, second_at, power, start):
    """The two smallest of three, and where they are."""
    better, close = power < best, power < second
    second = tl.where(better, best, tl.where(close, power, second))
    second_at = tl.where(better, best_at, tl.where(close, start, second_at))
    return tl.where(better, power, best), tl.where(better, start, best_at), second, second_at


@triton.jit
def _measured(x, anchors, weights, best_at, second_at, lanes, alive, M, K, pitch, D: tl.constexpr, ROWS: tl.constexpr):
    """Which cell of two tiles is nearest in double precision; the first, where none exists or the point is NaN."""
    least = tl.full(best_at.shape, float("inf"), tl.float64)
    found = best_at
    for which in tl.static_range(2):
        for row in range(ROWS):
            cell = (best_at if which == 0 else second_at) + row
            exists = alive & (cell < K)
            power = tl.zeros(best_at.shape, tl.float64)
            x_d, there = x, anchors
            for _ in range(D):
                point = tl.load(x_d + lanes, mask=alive, other=0).to(tl.float64)
                gap = point - tl.load(there + cell, mask=exists, other=0).to(tl.float64)
                power += gap * gap
                x_d += M
                there += pitch
            if weights is not None:
                power -= tl.load(weights + cell, mask=exists, other=0).to(tl.float64)
            better = exists & ((power < least) | ((power == least) & (cell < found) & (power < float("inf"))))
            least = tl.where(better, power, least)
            found = tl.where(better, cell, found)
    return found.to(tl.int64)


WALLS, NEAREST, PICK = Launch(_walls), Launch(_nearest), Launch(_pick)
