"""The searches of a tessellation, in plain PyTorch, blockwise in K.

Layout. Points are columns: `y` is (G, D, M), G tessellations side by side (one per variable, or G = 1), M points each.
Sums over D then run over contiguous memory whatever D is, and look-ups are gathers along the last dimension, whose
backward is a fast scatter-add; with (M, G, D) both were the slowest parts on a CPU.

Memory. A score is needed for every (point, cell) pair, never for every (point, cell, dimension), and only one tile of
scores exists at a time. A weight of -inf marks a cell that does not exist (ragged numbers of cells): its walls are
infinitely far away.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional

from tessella import checks

CELLS_PER_BLOCK = 2048
SCORES_PER_TILE = {"cpu": 2**19}  # two megabytes of float32: in the cache, and enough for a threaded product
SCORES_PER_TILE_ELSEWHERE = 2**24
CELLS_IN_PASSES = 64  # from which on a CPU finds the largest score of a row faster in four simple passes
WHOLE = 16  # numbers; a CPU is slow with rows that are no multiple of it


@torch.no_grad()
def active_wall(
    y: Tensor, cell: Tensor, anchors: Tensor, weights: Tensor | None = None, counts: tuple[int, ...] | None = None
) -> Tensor:
    """argmax_i n_i . y  with  n_i = 2 (x_i - x_k) / (|x_i - x_k|^2 - w_i + w_k)  and  k = cell.

    The cell's own index stands for the wall n_k = 0: it is the answer when no wall lies ahead of y.

    Args:
        y: displacements from the anchor, (G, D, M).
        cell: the cell each point is measured in, (G, M).
        anchors: (G, D, K).
        weights: Laguerre weights (G, K); None means that all are zero.
        counts: number of cells of each of the G tessellations, only used to skip work; None means K for each.

    Returns:
        Indices of the active walls, (G, M).
    """
    found = []
    for g, cells in _runs(anchors, counts):
        w = None if weights is None else weights[g, :cells]
        best, wall = _search(_wall_scores(y[g], cell[g], anchors[g, :, :cells], w), y[g], cells)
        found.append(torch.where(best > 0, wall, cell[g]))
    return found[0] if len(found) == 1 else torch.cat(found)


@torch.no_grad()
def nearest_anchor(
    x: Tensor, anchors: Tensor, weights: Tensor | None = None, counts: tuple[int, ...] | None = None
) -> Tensor:
    """argmin_i |x - x_i|^2 - w_i, for points x (G, D, M); the rest as in `active_wall`.

    Scored as 2 x . x_i - |x_i|^2 + w_i in double precision, so that the cancellation between these terms stays far
    below the resolution of single-precision points.
    """
    found = []
    for g, cells in _runs(anchors, counts):
        w = None if weights is None else weights[g, :cells]
        found.append(_search(_power_scores(x[g].double(), anchors[g, :, :cells].double(), w), x[g], cells)[1])
    return found[0] if len(found) == 1 else torch.cat(found)


@torch.no_grad()
def active_box_wall(y: Tensor, here: Tensor, lo: Tensor, hi: Tensor) -> Tensor:
    """argmax_j max(y_j / (hi_j - x_kj), y_j / (lo_j - x_kj)): displacements y, anchors x_k (G, D, M) -> (G, M)."""
    scores = torch.maximum(y / (hi[..., None] - here), y / (lo[..., None] - here))
    return _max(scores.mT)[1] if scores.stride(1) == 1 else _max(scores, 1)[1]  # rows, or columns, in memory


def _wall_scores(y: Tensor, cell: Tensor, anchors: Tensor, weights: Tensor | None) -> Callable[[slice, slice], Tensor]:
    """n_i . y / 2 = (x_i . y - x_k . y) / margin_ik for a tile of points and a block of walls."""
    groups, dim, cells = anchors.shape
    points = y.shape[-1]
    # Margins depend on the pair of cells alone: tabulate them when there are fewer cells than points.
    if cells <= min(points, CELLS_PER_BLOCK):
        walls = _padded(anchors, 0)
        table = _reach(anchors, walls, weights, None if weights is None else _padded(weights, 0))
        table[..., cells:] = 0
        table = table.flatten(0, 1)
        row = cell if groups == 1 else cell + cells * torch.arange(groups, device=cell.device)[:, None]

        def tabulated(m: slice, k: slice) -> Tensor:
            ahead = torch.bmm(y[..., m].mT, walls)  # (G, m, K): one block
            ahead = ahead.sub_(ahead.gather(2, cell[:, m, None]))
            return ahead.mul_(table.index_select(0, row[:, m].flatten()).view_as(ahead))

        return tabulated
    here = anchors.gather(2, cell[:, None].expand(groups, dim, points))  # (G, D, M)
    # One product gives (x_i - x_k) . y = [x_i, -1] . [y, x_k . y].
    y = torch.cat([y, (y * here).sum(1, keepdim=True)], 1)
    walls = functional.pad(anchors, (0, 0, 0, 1), value=-1)
    own = None if weights is None else weights.gather(1, cell)

    def scores(m: slice, k: slice) -> Tensor:
        w_here, w_there = (None, None) if own is None or weights is None else (own[:, m], weights[:, k])
        return torch.bmm(y[..., m].mT, walls[..., k]).mul_(_reach(here[..., m], anchors[..., k], w_here, w_there))

    return scores


def _power_scores(x: Tensor, anchors: Tensor, weights: Tensor | None) -> Callable[[slice, slice], Tensor]:
    power = anchors.square().sum(1, keepdim=True)  # (G, 1, K)
    if weights is not None:
        power = power - weights[:, None]
    return lambda m, k: torch.baddbmm(power[..., k], x[..., m].mT, anchors[..., k], beta=-1, alpha=2)


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """|a_k - b_i|^2 for all pairs: columns (G, D, K), (G, D, I) -> (G, K, I).

    The compiler fuses differences into one loop; run eagerly they would fill (G, K, I, D), so a kernel takes them. On a
    CPU that kernel is slow, and numbers of single precision have room for |a|^2 + |b|^2 - 2 a . b in double: relative
    to these terms the result is wrong by 2^-52 (D + 2) at most. It is made so much smaller, which no digit of single
    precision shows unless a and b agree to about seven digits: if they are equal, it is not positive.
    """
    if torch.compiler.is_compiling():
        return (a.mT[:, :, None] - b.mT[:, None]).square().sum(-1)
    if a.device.type != "cpu" or a.dtype == torch.float64:
        distances = torch.cdist(a.mT, b.mT, compute_mode="donot_use_mm_for_euclid_dist")
        return distances.mul_(distances)
    x, x_square = _doubled(a)
    y, y_square = (x, x_square) if b is a else _doubled(b)
    return torch.baddbmm(y_square, x.mT, y, alpha=-2).add_(x_square.mT).to(a.dtype)


def _doubled(a: Tensor) -> tuple[Tensor, Tensor]:
    """Columns in double precision, and a little less than their |a|^2."""
    x = a.double()
    return x, x.square().sum(1, keepdim=True).mul_(1 - (x.shape[1] + 4) * torch.finfo(x.dtype).eps)


def _reach(here: Tensor, there: Tensor, w_here: Tensor | None, w_there: Tensor | None) -> Tensor:
    """1 / (|x_i - x_k|^2 - w_i + w_k), and 0 where there is no wall (the cell itself, a cell that does not exist).

    With all digits of |x_i - x_k|^2: near anchors have the nearest walls.
    """
    margin = squared_distances(here, there)
    if w_here is not None and w_there is not None:
        margin = margin - w_there[:, None] + w_here[..., None]
    return torch.threshold_(margin, 0, torch.inf).reciprocal_()


def _search(scores: Callable[[slice, slice], Tensor], points: Tensor, cells: int) -> tuple[Tensor, Tensor]:
    """Largest score of every point over all cells, and its index: (G, M) each."""
    groups, _, many = points.shape
    room = SCORES_PER_TILE.get(points.device.type, SCORES_PER_TILE_ELSEWHERE)
    step = max(1, room // (groups * min(cells, CELLS_PER_BLOCK)))
    tiles = [_best_of_blocks(scores, m, cells) for m in _slices(many, step)]
    if len(tiles) == 1:
        return tiles[0]
    if not tiles:  # no points
        return points.new_zeros(groups, 0), torch.zeros(groups, 0, dtype=torch.int64, device=points.device)
    values, indices = zip(*tiles, strict=True)
    return torch.cat(values, 1), torch.cat(indices, 1)


def _best_of_blocks(scores: Callable[[slice, slice], Tensor], m: slice, cells: int) -> tuple[Tensor, Tensor]:
    first, *others = _slices(cells, CELLS_PER_BLOCK)
    found = _max(scores(m, first))
    for block in others:
        found = _better(found, _max(scores(m, block)), block.start)
    return found


def _padded(rows: Tensor, value: float) -> Tensor:
    """Rows of many cells, as long as a CPU likes them: (..., K) -> (..., K'), K <= K'."""
    cells = rows.shape[-1]
    if cells < CELLS_IN_PASSES or cells % WHOLE == 0 or rows.device.type != "cpu" or checks.followed():
        return rows
    return functional.pad(rows, (0, -cells % WHOLE), value=value)


def _max(scores: Tensor, dim: int = -1) -> tuple[Tensor, Tensor]:
    """`scores.max(dim)`, overwriting them.

    A CPU looks for a maximum and its index one number after another. It is faster to find the maximum alone, to mark
    where it is, and to find the largest index that is marked.
    """
    one_by_one = dim == -1 and scores.shape[-1] < CELLS_IN_PASSES
    counts = scores.dtype in (torch.float32, torch.float64)
    if one_by_one or not counts or scores.device.type != "cpu" or checks.followed():
        best, index = scores.max(dim)
        return best, index
    places = torch.arange(scores.shape[dim], dtype=scores.dtype)
    best = scores.amax(dim, keepdim=True)
    index = scores.eq_(best).mul_(places if dim == -1 else places[:, None]).amax(dim).long()
    return best.squeeze(dim), index


def _better(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], start: int) -> tuple[Tensor, Tensor]:
    """The larger maximum of two, with its index; indices of the other begin at `start`."""
    (best, index), (value, i) = one, other
    return torch.maximum(best, value), torch.where(value > best, i + start, index)


def _slices(length: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _runs(anchors: Tensor, counts: tuple[int, ...] | None) -> Iterator[tuple[slice, int]]:
    """Neighbouring tessellations that need the same number of blocks, with their largest number of cells.

    One column with 20,000 categories among forty small ones must not make all of them search 20,000 cells.
    """
    groups, _, cells = anchors.shape
    if counts is None or cells <= CELLS_PER_BLOCK:
        yield slice(0, groups), cells
        return
    blocks = [-(-count // CELLS_PER_BLOCK) for count in counts]
    start = 0
    for stop in range(1, groups + 1):
        if stop == groups or blocks[stop] != blocks[start]:
            yield slice(start, stop), max(counts[start:stop])
            start = stop
