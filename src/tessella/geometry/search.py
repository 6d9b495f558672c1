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
CELLS_IN_PASSES = 17  # from which on a CPU finds the largest score of a row faster in four simple passes
WHOLE = 32  # numbers; a CPU is slow with rows that are no multiple of it

Scores = Callable[..., Tensor]
"""From a block of cells and a tile of what there is for every point: (G, m, k)."""


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
    if counts is None or anchors.shape[-1] <= CELLS_PER_BLOCK:
        best, wall = _search(*_wall_scores(y, cell, anchors, weights), anchors.shape[-1])
        return torch.where(best > 0, wall, cell)
    runs = [(y[g], cell[g], *_some(anchors, weights, g, cells)) for g, cells in _runs(counts)]
    return torch.cat([active_wall(*run) for run in runs])


def nearest_anchor(
    x: Tensor, anchors: Tensor, weights: Tensor | None = None, counts: tuple[int, ...] | None = None
) -> Tensor:
    """argmin_i |x - x_i|^2 - w_i, for points x (G, D, M); the rest as in `active_wall`.

    Scored as 2 x . x_i - |x_i|^2 + w_i in double precision, so that the cancellation between these terms stays far
    below the resolution of single-precision points.
    """
    if counts is None or anchors.shape[-1] <= CELLS_PER_BLOCK:
        scores, cells = _power_scores(anchors.double(), weights)
        return _search(scores, (x.double(),), cells)[1]
    runs = [(x[g], *_some(anchors, weights, g, cells)) for g, cells in _runs(counts)]
    return torch.cat([nearest_anchor(*run) for run in runs])


@torch.no_grad()
def active_box_wall(y: Tensor, room: Tensor) -> Tensor:
    """argmax_j y_j / room_j, for displacements y and the room between anchor and box on their side.

    Columns (G, D, M) each -> (G, 1, M), or rows (M, D) each, which nobody follows -> (M, 1).
    """
    if y.dim() == 3:
        return _max(y / room, 1)[1]
    whole = y.new_zeros(len(y), -(-y.shape[1] // WHOLE) * WHOLE)
    torch.div(y, room, out=whole[:, : y.shape[1]])
    return _max(whole, 1)[1]


def _wall_scores(y: Tensor, cell: Tensor, anchors: Tensor, weights: Tensor | None) -> tuple[Scores, tuple[Tensor, ...]]:
    """n_i . y / 2 = (x_i . y - x_k . y) / margin_ik, and what it is computed from for every point."""
    groups, dim, cells = anchors.shape
    points = y.shape[-1]
    # Margins depend on the pair of cells alone: tabulate them when there are fewer cells than points.
    if cells <= min(points, CELLS_PER_BLOCK):
        walls, table = _widened(anchors), _widened(_reach(anchors, anchors, weights, weights)).flatten(0, 1)
        row = cell if groups == 1 else cell + cells * torch.arange(groups, device=cell.device)[:, None]

        def tabulated(k: slice, y: Tensor, cell: Tensor, row: Tensor) -> Tensor:
            ahead = torch.bmm(y.mT, walls)  # (G, m, K): one block
            ahead = ahead.sub_(ahead.gather(2, cell.unsqueeze(2)))
            return ahead.mul_(table.index_select(0, row.flatten()).view_as(ahead))

        return tabulated, (y, cell, row)
    here = anchors.gather(2, cell[:, None].expand(groups, dim, points))  # (G, D, M)
    # One product gives (x_i - x_k) . y = [x_i, -1] . [y, x_k . y].
    y = torch.cat([y, (y * here).sum(1, keepdim=True)], 1)
    walls = functional.pad(anchors, (0, 0, 0, 1), value=-1)

    def scores(k: slice, y: Tensor, here: Tensor, own: Tensor | None = None) -> Tensor:
        there = None if weights is None else weights[:, k]
        return torch.bmm(y.mT, walls[..., k]).mul_(_reach(here, anchors[..., k], own, there))

    return scores, (y, here) if weights is None else (y, here, weights.gather(1, cell))


def _power_scores(anchors: Tensor, weights: Tensor | None) -> tuple[Scores, int]:
    """2 x . x_i - |x_i|^2 + w_i, and how many cells there are to look at."""
    power = anchors.square().sum(1, keepdim=True)  # (G, 1, K)
    if weights is not None:
        power = power - weights[:, None]
    walls, power = _widened(anchors), _widened(power, torch.inf)

    def scores(k: slice, x: Tensor) -> Tensor:
        return torch.baddbmm(power[..., k], x.mT, walls[..., k], beta=-1, alpha=2)

    return scores, walls.shape[-1]


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


def _search(scores: Scores, points: tuple[Tensor, ...], cells: int) -> tuple[Tensor, Tensor]:
    """Largest score of every point over all cells, and its index: (G, M) each."""
    groups, *_, many = points[0].shape
    room = SCORES_PER_TILE.get(points[0].device.type, SCORES_PER_TILE_ELSEWHERE)
    step = max(1, room // (groups * min(cells, CELLS_PER_BLOCK)))
    if many <= step:
        return _best_of_blocks(scores, points, cells)
    tiles = zip(*(part.split(step, -1) for part in points), strict=True)
    values, indices = zip(*(_best_of_blocks(scores, tile, cells) for tile in tiles), strict=True)
    return torch.cat(values, 1), torch.cat(indices, 1)


def _best_of_blocks(scores: Scores, tile: tuple[Tensor, ...], cells: int) -> tuple[Tensor, Tensor]:
    best, index = _max(scores(slice(0, min(cells, CELLS_PER_BLOCK)), *tile))
    for start in range(CELLS_PER_BLOCK, cells, CELLS_PER_BLOCK):
        value, i = _max(scores(slice(start, min(start + CELLS_PER_BLOCK, cells)), *tile))
        best, index = torch.maximum(best, value), torch.where(value > best, i + start, index)
    return best.squeeze(-1), index.squeeze(-1)


def _widened(rows: Tensor, value: float = 0) -> Tensor:
    """Rows as long as a CPU likes them, if they are not short: (..., K) -> (..., K'), K <= K'."""
    cells = rows.shape[-1]
    if cells < CELLS_IN_PASSES or cells % WHOLE == 0 or not _in_passes(rows):
        return rows
    return functional.pad(rows, (0, -cells % WHOLE), value=value)


def _in_passes(scores: Tensor) -> bool:
    return scores.device.type == "cpu" and scores.dtype in (torch.float32, torch.float64) and not checks.followed()


def _max(scores: Tensor, dim: int = -1) -> tuple[Tensor, Tensor]:
    """`scores.max(dim, keepdim=True)`, overwriting them.

    A CPU looks for a maximum and its index one number after another. It is faster to find the maximum alone, to mark
    where it is, and to find the largest index that is marked; along rows, if they are whole.
    """
    along = dim in (-1, scores.dim() - 1)
    if (along and scores.shape[dim] % WHOLE) or not _in_passes(scores):
        best, index = scores.max(dim, keepdim=True)
        return best, index
    places = torch.arange(scores.shape[dim], dtype=scores.dtype)
    best = scores.amax(dim, keepdim=True)
    index = scores.eq_(best).mul_(places if along else places.unsqueeze(1)).amax(dim, keepdim=True).long()
    return best, index


def _runs(counts: tuple[int, ...]) -> Iterator[tuple[slice, int]]:
    """Neighbouring tessellations that need the same number of blocks, with their largest number of cells.

    One column with 20,000 categories among forty small ones must not make all of them search 20,000 cells.
    """
    blocks = [-(-count // CELLS_PER_BLOCK) for count in counts]
    start = 0
    for stop in range(1, len(counts) + 1):
        if stop == len(counts) or blocks[stop] != blocks[start]:
            yield slice(start, stop), max(counts[start:stop])
            start = stop


def _some(anchors: Tensor, weights: Tensor | None, g: slice, cells: int) -> tuple[Tensor, Tensor | None]:
    """The first cells of some tessellations."""
    return anchors[g, :, :cells], None if weights is None else weights[g, :cells]
