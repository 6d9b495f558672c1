"""The map into a cell and out of it as one operation: its log-determinant and its gradients, written by hand.

`CellBijection` states the map, and that is the truth: compilers, `torch.func` and profiles that are no power take it.
Run eagerly, it is some two hundred small operations, whose bookkeeping costs more than their arithmetic; here it is
half as many without a graph. Points are columns (G, D, M) inside, as in `geometry.search`; in memory they stay rows
where one tessellation has many dimensions and a CPU would rather copy whole rows than look every coordinate up.

With v the displacement from the anchor x_k, h its gauge, at the wall to anchor x_i or at the box,

    out = x_k + c v (in),  out = c v (out),  n = dh / dv = 2 (x_i - x_k) / m,  m = |x_i - x_k|^2 - w_i + w_k,
    dh / dx_i = 2 v / m - h n = -dh / dx_k,  dh / dw_i = h / m = -dh / dw_k,
    at the box  n = e_j / (b_j - x_kj),  dh / dx_kj = h n_j = -dh / db_j,

and c and the log-determinant are functions of h and log g alone (`Power`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from tessella.geometry import kernels, search
from tessella.geometry.tessellation import KEPT_FROM_WALL, take

ROWS_FROM = 32  # dimensions, from which on points and anchors stay rows in memory


@dataclass(frozen=True)
class Power:
    """c and ladj of the profile a_p(s) = s / (1 + s^p)^(1/p), as functions of the gauge h and of log g.

    Into the cell, s = g h, q = log(1 + s^p):  c = g exp(-q / p),  ladj = D log g - (D + p) q / p.
    Out of it, q = -log(1 - h^p):  c = exp(q / p) / g,  ladj = -D log g + (D + p) q / p.

    Attributes:
        p: the power.
        out: out of the cell, not into it.
        steady: see `CellBijection`.
    """

    p: float
    out: bool
    steady: float

    def __call__(self, h: Tensor, log_g: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
        """c, ladj, and the rate |d q / d h| / p, (G, M) each."""
        share = (dim + self.p) / self.p
        if self.out:
            q, rate = self._out(h)
            return torch.exp(q / self.p - log_g), share * q - dim * log_g, rate
        g = log_g.exp()
        q, rate = self._into(g * h)
        return torch.exp(log_g - q / self.p), dim * log_g - share * q, g * rate

    def _into(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """q = log(1 + s^p) and s^(p-1) / (1 + s^p)."""
        if self.p == 1:
            return torch.log1p(s), 1 / (1 + s)
        log_s = s.clamp_min(torch.finfo(s.dtype).tiny ** 0.5).log()
        q = torch.logaddexp(self.p * log_s, torch.zeros_like(s))
        return q, torch.exp((self.p - 1) * log_s - q)

    def _out(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """q = -log(1 - h^p) and h^(p-1) / (1 - h^p), less where it shall be steady, 0 beyond the wall."""
        eps = torch.finfo(h.dtype).eps
        slack = (1 - h).clamp_min(eps)
        if self.steady:
            slack = slowed(slack, self.steady)
        if self.p == 1:
            left, rate = slack, 1 / slack
        else:
            log_h = torch.log1p(-slack.clamp_max(1 - eps))
            left = -torch.expm1(self.p * log_h)
            rate = torch.exp((self.p - 1) * log_h) / left
        if self.steady:
            rate = rate * (slack.detach() / self.steady).clamp_max(1)
        return -left.log(), rate * (1 - h >= eps)

    def pulls(self, on_c: Tensor, on_ladj: Tensor, h: Tensor, rate: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        """Gradients of h and log g, from those of log c and ladj."""
        both = torch.add(on_c, on_ladj, alpha=dim + self.p) * rate
        on_log_g = torch.add(on_c, on_ladj, alpha=dim)
        return (both, -on_log_g) if self.out else (-both, torch.addcmul(on_log_g, h, both, value=-1))


def slowed(slack: Tensor, steady: float) -> Tensor:
    """The same values; their gradient times min(1, slack / steady).

    >>> slack = torch.tensor([0.1, 0.5], requires_grad=True)
    >>> torch.autograd.grad(slowed(slack, 0.2).log().sum(), slack)[0]  # 1 / slack, at most 1 / steady
    tensor([5., 2.])
    """
    value = slack.detach()
    return value + (slack - value) * (value / steady).clamp_max(1)


class Cells(NamedTuple):
    """What a tessellation and its map are made of; where all variables share one, N is left out."""

    free: Tensor  # ([N,] K, D)
    centre: Tensor | None  # of the box, ([N,] D)
    log_radius: Tensor | None
    weights: Tensor | None  # (G, K)
    log_scale: Tensor  # ([N,] K)


class Kept(NamedTuple):
    """What backward needs beside the arguments, named as in `forward`."""

    k: Tensor
    v: Tensor
    normal: Tensor
    slope: Tensor
    h: Tensor
    c: Tensor
    rate: Tensor
    wall: Tensor
    at_wall: Tensor
    bent: Tensor | None
    axis: Tensor | None
    room: Tensor | None


class CellMap(torch.autograd.Function):
    """x (*batch, [N,] D), cell (*batch, [N]), cells -> the image of x, ladj (*batch, [N]).

    Its first arguments are the program, which is this module or `cell_triton`, the law, and how many cells the
    variables have.
    """

    @staticmethod
    def forward(
        ctx: Any, program: Any, law: Power, counts: tuple[int, ...], x: Tensor, cell: Tensor, *cells: Any
    ) -> tuple[Tensor, Tensor]:
        image, ladj, kept = program.forward(law, counts, x, cell, Cells(*cells))
        ctx.program, ctx.law, ctx.counts = program, law, counts
        ctx.save_for_backward(x, cell, *cells, *kept)
        return image, ladj

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        x, cell, *saved = ctx.saved_tensors
        cells, kept, run = Cells(*saved[:5]), tuple(saved[5:]), ctx.program.backward
        if torch.is_grad_enabled():  # these gradients will be differentiated themselves
            kept, run = forward(ctx.law, ctx.counts, x, cell, cells)[2], backward
        on_x, *on_cells = run(ctx.law, x, cell, cells, kept, *grads, ctx.needs_input_grad[5:])
        return None, None, None, on_x, None, *on_cells


def forward(law: Power, counts: tuple[int, ...], x: Tensor, cell: Tensor, cells: Cells) -> tuple[Tensor, Tensor, Kept]:
    """The image of x, ladj, and what backward needs."""
    groups, dim = len(counts), x.shape[-1]
    columns = _columns(x, groups)
    k = cell.reshape(-1, groups).mT.contiguous()
    rows, bent, centre, radius = placed(cells, groups)
    anchors = rows.mT if _stay_rows(rows) else rows.mT.contiguous()
    here = _at(anchors, k)
    v = columns - here if law.out else columns
    wall = kernels.active_wall(v, k, anchors, cells.weights, counts)
    step = _at(anchors, wall) - here
    margin = (step * step).sum(1)
    if cells.weights is not None:
        margin = margin - cells.weights.gather(1, wall) + cells.weights.gather(1, k)
    slope = 2 / functional.threshold(margin, 0, 1)
    normal = step * slope[:, None]
    h = (normal * v).sum(1)
    axis = room = None
    if centre is None or radius is None:
        at_wall, h = h > 0, h.relu()
    else:
        lo, hi = ((centre + side).expand(groups, dim) for side in (-radius, radius))
        axis = search.active_box_wall(v, here, lo, hi)
        ahead, at = (columns.gather(1, axis[:, None])[:, 0] for columns in (v, here))
        room = torch.where(ahead > 0, hi.gather(1, axis), lo.gather(1, axis)) - at
        box = ahead / room
        at_wall, h = h > box, torch.maximum(h, box)
    c, ladj, rate = law(h, cells.log_scale.reshape(groups, -1).gather(1, k), dim)
    image = v * c[:, None] if law.out else torch.addcmul(here, v, c[:, None])
    kept = Kept(k, v, normal, slope, h, c, rate, wall, at_wall, bent, axis, room)
    return image.permute(2, 0, 1).reshape(x.shape), ladj.mT.reshape(x.shape[:-1]), kept


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
    """Gradients of x and, where the cells learn, of what they are made of."""
    kept = Kept(*kept)
    groups, dim, _ = kept.v.shape
    shape = on_image.shape
    on_image = _columns(on_image, groups)
    on_log_c = (on_image * kept.v).sum(1) * kept.c
    on_h, on_log_g = law.pulls(on_log_c, on_ladj.reshape(-1, groups).mT, kept.h, kept.rate, dim)
    on_wall = on_h * kept.at_wall
    on_v = torch.addcmul(on_image * kept.c[:, None], kept.normal, on_wall[:, None])
    pull = None
    if kept.axis is not None and kept.room is not None:
        on_box = (on_h - on_wall) / kept.room
        on_v = on_v.scatter_add_(1, kept.axis[:, None], on_box[:, None])
        pull = on_box * kept.h
    on_x = on_v.permute(2, 0, 1).reshape(shape)
    if not any(needs):
        return on_x, *(None,) * len(cells)
    on_there = kept.v * (kept.slope * on_wall)[:, None]
    on_there = on_there.addcmul_(kept.normal, (kept.h * on_wall)[:, None], value=-1)
    on_here = (-on_v if law.out else on_image) - on_there
    if kept.axis is not None and pull is not None:
        on_here = on_here.scatter_add_(1, kept.axis[:, None], pull[:, None])
    count = cells.free.shape[-2]
    on_anchors = _collected(((kept.k, on_here), (kept.wall, on_there)), cells.free.reshape(groups, count, dim))
    on_weights = None
    if cells.weights is not None:
        weight = kept.h * on_wall * kept.slope / 2
        on_weights = torch.zeros_like(cells.weights).scatter_add_(1, kept.wall, weight)
        on_weights = on_weights.scatter_add_(1, kept.k, -weight)
    on_log_scale = on_log_g.new_zeros(groups, count).scatter_add_(1, kept.k, on_log_g).reshape(cells.log_scale.shape)
    return on_x, *_displace(cells, kept, on_anchors, pull), on_weights, on_log_scale


def _stay_rows(points: Tensor) -> bool:
    """Whether rows (G, M, D) are not made columns in memory."""
    return len(points) == 1 and points.shape[-1] >= ROWS_FROM and points.device.type == "cpu"


def _columns(points: Tensor, groups: int) -> Tensor:
    """(*batch, [N,] D) -> (G, D, M)."""
    rows = points.reshape(-1, groups, points.shape[-1]).transpose(0, 1)
    return rows.mT if _stay_rows(rows) else rows.mT.contiguous()


def _at(anchors: Tensor, index: Tensor) -> Tensor:
    """(G, D, K)[index (G, M)] -> (G, D, M), rows in memory if those of the anchors are."""
    if _stay_rows(anchors.mT):
        return anchors[0].mT.index_select(0, index[0]).mT[None]
    return take(anchors, index)


def _collected(values: Sequence[tuple[Tensor, Tensor]], like: Tensor) -> Tensor:
    """Columns (G, D, M), each added to the anchor that its index (G, M) names: of the shape of `like`, (G, K, D)."""
    rows = _stay_rows(like)
    total = values[0][1].new_zeros((like if rows else like.mT).shape)
    for index, columns in values:
        if rows:
            total[0].index_add_(0, index[0], columns[0].mT)  # much faster in two dimensions than in three
        else:
            total.scatter_add_(2, index[:, None].expand_as(columns), columns)
    return total if rows else total.mT


def placed(cells: Cells, groups: int) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Anchors (G, K, D), as `Tessellation.anchors` has them; tanh(free), centre and radius of the boxes (1 or G, D)."""
    dim = cells.free.shape[-1]
    free = cells.free.reshape(groups, -1, dim)
    if cells.centre is None or cells.log_radius is None:
        return free, None, None, None
    centre, radius, bent = cells.centre.reshape(-1, dim), cells.log_radius.exp().reshape(-1, dim), free.tanh()
    anchors = torch.addcmul(centre[:, None], (radius * (1 - KEPT_FROM_WALL))[:, None], bent)
    return anchors, bent, centre, radius


def _displace(cells: Cells, kept: Kept, on_anchors: Tensor, pull: Tensor | None) -> tuple[Tensor | None, ...]:
    """Gradients of free, centre and log_radius, from those of the anchors (G, K, D) and the pull of the box (G, M)."""
    if cells.log_radius is None or kept.bent is None or kept.axis is None or kept.room is None or pull is None:
        return on_anchors.reshape(cells.free.shape), None, None
    groups, dim = kept.v.shape[:2]
    radius = cells.log_radius.exp().reshape(-1, dim)
    inner = radius * (1 - KEPT_FROM_WALL)
    on_free = on_anchors * (1 - kept.bent * kept.bent) * inner[:, None]
    # The corner ahead, lo or hi, is told by the sign of the room.
    corner = kept.axis + dim * (kept.room > 0)
    on_lo, on_hi = pull.new_zeros(groups, 2 * dim).scatter_add_(1, corner, -pull).chunk(2, 1)
    on_centre = on_anchors.sum(1) + on_lo + on_hi
    on_log_radius = torch.addcmul((on_anchors * kept.bent).sum(1) * inner, on_hi - on_lo, radius)
    if len(radius) < groups:
        on_centre, on_log_radius = on_centre.sum(0), on_log_radius.sum(0)
    shape = cells.log_radius.shape
    return on_free.reshape(cells.free.shape), on_centre.reshape(shape), on_log_radius.reshape(shape)
