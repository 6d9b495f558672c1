"""The programs of `cell_map` as Triton kernels: search, map, log-determinant in one launch, all gradients in another.

A program takes a tile of points of one variable, a point for each lane. For few pairs of points and cells, where an
update is as slow as its launches, it searches all cells on its way; for many, `search_triton` has searched before.
Forward keeps one number for every point, the wall that it reached: i < K for the one to anchor i (k itself where none
is ahead), K + j and K + D + j for the sides lo_j and hi_j of the box. Backward measures that wall again. Gradients of
the cells are added up by atomic operations, so their last digits depend on the order: where
`torch.use_deterministic_algorithms` is on, PyTorch's program runs.

Points, anchors and gradients lie in memory as they come, (M, G, D) and (G, K, D). Where there is a box, a kernel puts
the anchors into it first. Offsets that may exceed 32 bits are added in 64.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch._utils import _unflatten_dense_tensors

from tessella.bijections.cell_layout import Columns
from tessella.bijections.cell_map import Cells, Power
from tessella.geometry import kernels
from tessella.geometry.launches import Launch
from tessella.geometry.placing_triton import KEPT, expm1, placed_rows, tanh

PAIRS = 2**23  # of points and cells, up to which the program of a point looks at all its cells
WARPS = 2
LANES = 32 * WARPS
ROWS = 16  # cells of a tile, at most
EPS = tl.constexpr(torch.finfo(torch.float32).eps)
TINY = tl.constexpr(torch.finfo(torch.float32).tiny)
ROOT_TINY = tl.constexpr(torch.finfo(torch.float32).tiny ** 0.5)


def covers(x: Tensor) -> bool:
    """Single precision, and sums whose order does not matter."""
    return x.dtype == torch.float32 and not torch.are_deterministic_algorithms_enabled()


def forward(
    law: Power, counts: tuple[int, ...], x: Tensor, cell: Tensor, cells: Cells
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """As `cell_map.forward`."""
    x, cell, cells = x.contiguous(), cell.contiguous(), _contiguous(cells)
    anchors = cells.free
    image, ladj = torch.empty_like(x), x.new_empty(cell.shape)
    if not x.numel():
        return image, ladj, (torch.empty_like(cell, dtype=torch.int32), anchors)
    grid, sizes, constants = _plan(law, len(counts), x, cells)
    if cells.log_radius is not None:
        anchors = placed_rows(cells.free, cells.centre, cells.log_radius)
    if cell.numel() * sizes[1] <= PAIRS:
        wall, rows = torch.empty_like(cell, dtype=torch.int32), min(ROWS, 1 << (sizes[1] - 1).bit_length())
    else:
        wall, rows = _searched(law, counts, x, cell, anchors, cells.weights), 0
    tensors = x, cell, anchors, cells.weights, cells.log_scale, cells.centre, cells.log_radius, image, ladj, wall
    FORWARD(grid, tensors, sizes, (*constants, rows), WARPS)
    return image, ladj, (wall, anchors)


def backward(
    law: Power,
    x: Tensor,
    cell: Tensor,
    cells: Cells,
    kept: tuple[Any, ...],
    on_image: Tensor,
    on_ladj: Tensor,
    needs: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """As `cell_map.backward`."""
    wall, anchors = kept
    x, cell, cells = x.contiguous(), cell.contiguous(), _contiguous(cells)
    on_x, alike = torch.empty_like(x), not any(on_ladj.stride())
    on_cells = _zeros([part if need else None for part, need in zip(cells, needs, strict=True)])
    if x.numel():
        groups = 1 if anchors.dim() == 2 else len(anchors)
        tensors = (
            x, cell, cells.free, anchors, cells.weights, cells.log_scale, cells.centre, cells.log_radius,
            wall, on_image.contiguous(), on_ladj if alike else on_ladj.contiguous(), on_x, *on_cells,
        )  # fmt: skip
        grid, sizes, constants = _plan(law, groups, x, cells)
        BACKWARD(grid, tensors, sizes, (*constants, alike), WARPS)
    return on_x, *on_cells


def _searched(
    law: Power, counts: tuple[int, ...], x: Tensor, cell: Tensor, anchors: Tensor, weights: Tensor | None
) -> Tensor:
    """The wall of every point to another anchor, among many."""
    layout = Columns(len(counts))
    k, v, columns = layout.index(cell), layout.points(x), layout.anchors(anchors)
    wall = kernels.active_wall(v - layout.at(columns, k) if law.out else v, k, columns, weights, counts)
    return layout.back(wall.int()[:, None], cell).contiguous()


def _plan(
    law: Power, groups: int, x: Tensor, cells: Cells
) -> tuple[tuple[int, int, int], tuple[int, int], tuple[Any, ...]]:
    """Tiles of points and variables; M and K; the constants that both kernels take."""
    dim = x.shape[-1]
    points = x.numel() // (groups * dim)
    boxes = cells.centre is not None and cells.centre.dim() == 2
    constants = dim, boxes, law.p, law.out, law.steady, LANES
    return (-(-points // LANES), groups, 1), (points, cells.free.shape[-2]), constants


def _contiguous(cells: Cells) -> Cells:
    return Cells._make(None if part is None else part.contiguous() for part in cells)


def _zeros(parts: list[Tensor | None]) -> list[Tensor | None]:
    """Room for a sum of the shape of every part, all in one piece of memory."""
    present = [part for part in parts if part is not None]
    if not present:
        return parts
    memory = present[0].new_zeros(sum(part.numel() for part in present))
    pieces = iter(_unflatten_dense_tensors(memory, present))
    return [None if part is None else next(pieces) for part in parts]


@triton.jit
def _log1p(u):
    """log(1 + u), by 2 artanh(u / (2 + u)) for small u."""
    w = u / (2 + u)
    s = w * w
    near = 2 * w * (1 + s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * (1 / 9 + s / 11)))))
    return tl.where(tl.abs(u) < 0.4, near, tl.log(1 + u))


@triton.jit
def _law(h, log_g, D: tl.constexpr, P: tl.constexpr, OUT: tl.constexpr, STEADY: tl.constexpr):
    """c, ladj and rate, as `Power` has them."""
    share: tl.constexpr = (D + P) / P
    if OUT:
        slack = tl.maximum(1 - h, EPS)
        if P == 1:
            left = slack
            rate = 1 / slack
        else:
            log_h = _log1p(-tl.minimum(slack, 1 - EPS))
            left = -expm1(P * log_h)
            rate = tl.exp((P - 1) * log_h) / left
        if STEADY > 0:
            rate *= tl.minimum(slack / STEADY, 1)
        q = -tl.log(left)
        return tl.exp(q / P - log_g), share * q - D * log_g, tl.where(1 - h >= EPS, rate, 0)
    g = tl.exp(log_g)
    s = g * h
    if P == 1:
        q = _log1p(s)
        rate = 1 / (1 + s)
    else:
        log_s = tl.log(tl.maximum(s, ROOT_TINY))
        q = tl.maximum(P * log_s, 0) + _log1p(tl.exp(-tl.abs(P * log_s)))
        rate = tl.exp((P - 1) * log_s - q)
    return tl.exp(log_g - q / P), D * log_g - share * q, g * rate


@triton.jit
def _displacement(x, anchors, d, at, here, alive, OUT: tl.constexpr):
    """v_d, the coordinate measured from the anchor."""
    v = tl.load(x + at + d, mask=alive, other=0)
    return v - tl.load(anchors + here + d) if OUT else v


@triton.jit
def _corner(centre, log_radius, d, ahead):
    """b_d, the side of the box in front of a point."""
    r = tl.exp(tl.load(log_radius + d))
    return tl.load(centre + d) + tl.where(ahead > 0, r, -r)


@triton.jit
def _gauge(x, anchors, weights, k, i, at, here, there, alive, D: tl.constexpr, OUT: tl.constexpr):
    """n . v and 2 / m at the wall to the anchor i."""
    ahead = tl.zeros(k.shape, tl.float32)
    margin = tl.zeros(k.shape, tl.float32)
    for d in range(D):
        step = tl.load(anchors + there + d) - tl.load(anchors + here + d)
        ahead += step * _displacement(x, anchors, d, at, here, alive, OUT)
        margin += step * step
    if weights is not None:
        margin += tl.load(weights + k) - tl.load(weights + i)
    slope = 2 / tl.where((margin > 0) & (i != k), margin, 1)
    return slope * ahead, slope


@triton.jit(do_not_specialize=["M", "K"])
def _forward(
    x,
    cell,
    anchors,
    weights,
    log_scale,
    centre,
    log_radius,
    image,
    ladj,
    wall,
    M,
    K,
    D: tl.constexpr,
    BOXES: tl.constexpr,
    P: tl.constexpr,
    OUT: tl.constexpr,
    STEADY: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
):
    g, groups = tl.program_id(1).to(tl.int64), tl.num_programs(1)
    m = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    alive = m < M
    point = m * groups + g
    at = point * D
    k = tl.load(cell + point, mask=alive, other=0)
    here = k * D
    anchors += g * K * D
    log_scale += g * K
    if weights is not None:
        weights += g * K
    if ROWS == 0:
        i = tl.load(wall + point, mask=alive, other=0)
    else:
        rows = tl.arange(0, ROWS)
        best = tl.zeros((ROWS, LANES), tl.float32)
        found = tl.zeros((ROWS, LANES), tl.int32)
        for start in range(0, K, ROWS):
            exists, row = rows < K - start, (start + rows).to(tl.int64) * D
            ahead = tl.zeros((ROWS, LANES), tl.float32)
            margin = tl.zeros((ROWS, LANES), tl.float32)
            for d in range(D):
                there = tl.load(anchors + row + d, mask=exists, other=0)
                step = there[:, None] - tl.load(anchors + here + d)[None, :]
                ahead += step * _displacement(x, anchors, d, at, here, alive, OUT)[None, :]
                margin += step * step
            if weights is not None:
                w = tl.load(weights + start + rows, mask=exists, other=-float("inf"))
                margin += tl.load(weights + k)[None, :] - w[:, None]
            score = ahead / tl.where(margin > TINY, margin, 1)
            better = (margin > TINY) & exists[:, None] & (score > best)
            best = tl.where(better, score, best)
            found = tl.where(better, start + rows[:, None], found)
        top = tl.max(best, 0)
        i = tl.min(tl.where(best == top[None, :], found, 2147483647), 0)
        i = tl.where(top > 0, i, k.to(tl.int32))
    h, _ = _gauge(x, anchors, weights, k, i, at, here, i.to(tl.int64) * D, alive, D, OUT)
    h = tl.maximum(h, 0)
    if log_radius is not None:
        if BOXES:
            centre += g * D
            log_radius += g * D
        for d in range(D):
            v = _displacement(x, anchors, d, at, here, alive, OUT)
            box = v / (_corner(centre, log_radius, d, v) - tl.load(anchors + here + d))
            nearer = box >= h
            h = tl.where(nearer, box, h)
            i = tl.where(nearer, tl.where(v > 0, K + D + d, K + d), i)
    c, volume, _ = _law(h, tl.load(log_scale + k), D, P, OUT, STEADY)
    for d in range(D):
        z = _displacement(x, anchors, d, at, here, alive, OUT) * c
        if not OUT:
            z += tl.load(anchors + here + d)
        tl.store(image + at + d, z, mask=alive)
    tl.store(ladj + point, volume, mask=alive)
    tl.store(wall + point, i, mask=alive)


@triton.jit(do_not_specialize=["M", "K"])
def _backward(
    x,
    cell,
    free,
    anchors,
    weights,
    log_scale,
    centre,
    log_radius,
    wall,
    on_image,
    on_ladj,
    on_x,
    on_free,
    on_centre,
    on_log_radius,
    on_weights,
    on_log_scale,
    M,
    K,
    D: tl.constexpr,
    BOXES: tl.constexpr,
    P: tl.constexpr,
    OUT: tl.constexpr,
    STEADY: tl.constexpr,
    LANES: tl.constexpr,
    ALIKE: tl.constexpr,
):
    g, groups = tl.program_id(1).to(tl.int64), tl.num_programs(1)
    m = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    alive = m < M
    point = m * groups + g
    at = point * D
    k = tl.load(cell + point, mask=alive, other=0)
    code = tl.load(wall + point, mask=alive, other=0)
    at_box = code >= K
    i = tl.where(at_box, k, code)
    here, there = k * D, i * D
    cells = g * K  # of variables before this one
    anchors += cells * D
    log_scale += cells
    if weights is not None:
        weights += cells
    h, slope = _gauge(x, anchors, weights, k, i, at, here, there, alive, D, OUT)
    h = tl.maximum(h, 0)
    room = tl.full((LANES,), 1, tl.float32)
    axis = tl.full((LANES,), -1, tl.int32)
    if log_radius is not None:
        free += cells * D
        if BOXES:
            centre += g * D
            log_radius += g * D
        axis = tl.where(at_box, (code - K) % D, 0)
        v = _displacement(x, anchors, axis, at, here, alive, OUT)
        room = tl.where(
            at_box, _corner(centre, log_radius, axis, code - K - D + 0.5) - tl.load(anchors + here + axis), 1
        )
        h = tl.where(at_box, v / room, h)
        axis = tl.where(at_box, axis, -1)
    on_c = tl.zeros((LANES,), tl.float32)
    for d in range(D):
        v = _displacement(x, anchors, d, at, here, alive, OUT)
        on_c += tl.load(on_image + at + d, mask=alive, other=0) * v
    c, _, rate = _law(h, tl.load(log_scale + k), D, P, OUT, STEADY)
    pulled = tl.load(on_ladj + (0 * point if ALIKE else point), mask=alive, other=0)
    on_c *= c
    on_h = -rate * (on_c + (D + P) * pulled)
    on_log_g = on_c + D * pulled
    on_log_g = -on_log_g if OUT else on_log_g + h * on_h
    on_h = -on_h if OUT else on_h
    on_wall = tl.where((h > 0) & (i != k), on_h, 0)
    on_box = tl.where(at_box, on_h / room, 0)
    for d in range(D):
        v = _displacement(x, anchors, d, at, here, alive, OUT)
        on_z = tl.load(on_image + at + d, mask=alive, other=0)
        normal = slope * (tl.load(anchors + there + d) - tl.load(anchors + here + d))
        side = tl.where(axis == d, on_box, 0)
        on_v = on_z * c + normal * on_wall + side
        tl.store(on_x + at + d, on_v, mask=alive)
        on_there = on_wall * (slope * v - h * normal)
        on_here = (-on_v if OUT else on_z) - on_there + h * side
        if log_radius is not None:
            r = tl.exp(tl.load(log_radius + d))
            inner = r * (1 - KEPT)
            near, far = tanh(tl.load(free + here + d)), tanh(tl.load(free + there + d))
            row = g * D if BOXES else 0
            if on_centre is not None:
                both = tl.where(alive, on_here + on_there, 0) - h * side
                tl.atomic_add(on_centre + row + d, tl.sum(both, 0))
            if on_log_radius is not None:
                both = inner * tl.where(alive, on_here * near + on_there * far, 0)
                both -= r * h * tl.where(code >= K + D, side, -side)
                tl.atomic_add(on_log_radius + row + d, tl.sum(both, 0))
            on_here *= inner * (1 - near * near)
            on_there *= inner * (1 - far * far)
        if on_free is not None:
            tl.atomic_add(on_free + cells * D + here + d, on_here, mask=alive)
            tl.atomic_add(on_free + cells * D + there + d, on_there, mask=alive & (i != k))
    if on_log_scale is not None:
        tl.atomic_add(on_log_scale + cells + k, on_log_g, mask=alive)
    if on_weights is not None:
        weight = on_wall * h * slope / 2
        tl.atomic_add(on_weights + cells + i, weight, mask=alive & (i != k))
        tl.atomic_add(on_weights + cells + k, -weight, mask=alive & (i != k))


FORWARD, BACKWARD = Launch(_forward), Launch(_backward)
