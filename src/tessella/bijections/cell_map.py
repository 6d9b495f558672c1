"""The map into a cell and out of it as one operation: its log-determinant and its gradients, written by hand.

`CellBijection` states the map, and that is the truth: compilers, `torch.func` and profiles that are no power take it.
Run eagerly, it is some two hundred small operations, whose bookkeeping costs more than their arithmetic; here it is
half as many without a graph. `cell_layout` says how points lie in memory inside.

With v the displacement from the anchor x_k, h its gauge, at the wall to anchor x_i or at the box,

    out = x_k + c v (in),  out = c v (out),  n = dh / dv = 2 (x_i - x_k) / m,  m = |x_i - x_k|^2 - w_i + w_k,
    dh / dx_i = 2 v / m - h n = -dh / dx_k,  dh / dw_i = h / m = -dh / dw_k,
    at the box  n = e_j / (b_j - x_kj),  dh / dx_kj = h n_j = -dh / db_j,

and c and the log-determinant are functions of h and log g alone (`Power`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tessella.bijections.cell_layout import Columns, layout_of
from tessella.geometry import search
from tessella.geometry.tessellation import KEPT_FROM_WALL


@dataclass(frozen=True)
class Power:
    """c and ladj of the profile a_p(s) = s / (1 + s^p)^(1/p), as functions of the gauge h and of log g.

    Into the cell, s = g h, e = -log(1 + s^p):  log c = log g + e / p,  ladj = D log c + e.
    Out of it, e = -log(1 - h^p):  log c = e / p - log g,  ladj = D log c + e.

    Attributes:
        p: the power.
        out: out of the cell, not into it.
        steady: see `CellBijection`.
    """

    p: float
    out: bool
    steady: float

    def __call__(self, h: Tensor, log_g: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
        """c, ladj, and the rate |d log c / d h|, of the shape of h each."""
        e, log_c, rate = self._out(h, log_g) if self.out else self._into(h, log_g)
        c = log_c.exp()
        return c, torch.add(e, log_c, alpha=dim), c if rate is None else rate

    def _into(self, h: Tensor, log_g: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """e, log c and g s^(p-1) / (1 + s^p), which for p = 1 is c."""
        g = log_g.exp()
        s = g * h
        if self.p == 1:
            e = torch.log1p(s).neg_()
            return e, log_g + e, None
        log_s = s.clamp_min(torch.finfo(s.dtype).tiny ** 0.5).log()
        e = -torch.logaddexp(self.p * log_s, torch.zeros_like(s))
        return e, torch.add(log_g, e, alpha=1 / self.p), g * torch.exp((self.p - 1) * log_s + e)

    def _out(self, h: Tensor, log_g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """e, log c and h^(p-1) / (1 - h^p), less where it shall be steady, 0 beyond the wall."""
        eps = torch.finfo(h.dtype).eps
        slack = (1 - h).clamp_min(eps)
        if self.steady:
            slack = slowed(slack, self.steady)
        if self.p == 1:
            left, rate = slack, slack.reciprocal()
        else:
            log_h = torch.log1p(-slack.clamp_max(1 - eps))
            left = -torch.expm1(self.p * log_h)
            rate = torch.exp((self.p - 1) * log_h) / left
        if self.steady:
            rate = rate * (slack.detach() / self.steady).clamp_max(1)
        e = -left.log()
        return e, e / self.p - log_g, rate * (1 - h >= eps)

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
    step: Tensor
    slope: Tensor
    h: Tensor
    c: Tensor
    rate: Tensor
    wall: Tensor
    at_wall: Tensor
    bent: Tensor | None
    radius: Tensor | None
    inner: Tensor | None
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
    layout = layout_of(x, len(counts))
    k, v = layout.index(cell), layout.points(x)
    placed, bent, radius, inner = _placed(cells)
    anchors = layout.anchors(placed)
    here = layout.at(anchors, k)
    v = v - here if law.out else v
    wall = layout.active_wall(v, k, anchors, cells.weights, counts)
    step = layout.at(anchors, wall).sub_(here)
    margin = (step * step).sum(1, keepdim=True)
    if cells.weights is not None:
        margin = margin - layout.scalar_at(cells.weights, wall) + layout.scalar_at(cells.weights, k)
    slope = torch.threshold(margin, 0, 1).reciprocal() * 2
    h = (step * v).sum(1, keepdim=True) * slope
    axis = room = None
    if cells.centre is None or radius is None:
        at_wall, h = h > 0, h.relu()
    else:
        sides = (layout.corner(cells.centre) - here).add_(torch.copysign(layout.corner(radius), v))
        axis = search.active_box_wall(v, sides)
        room = sides.gather(1, axis)
        box = v.gather(1, axis) / room
        at_wall, h = h > box, torch.maximum(h, box)
    c, ladj, rate = law(h, layout.scalar_at(cells.log_scale, k), x.shape[-1])
    image = v * c if law.out else here.addcmul_(v, c)
    kept = Kept(k, v, step, slope, h, c, rate, wall, at_wall, bent, radius, inner, axis, room)
    return layout.back(image, x), layout.back(ladj, cell), kept


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
    layout = layout_of(x, len(kept.v) if kept.v.dim() == 3 else 1)
    on_points = layout.points(on_image)
    on_log_c = (on_points * kept.v).sum(1, keepdim=True) * kept.c
    on_h, on_log_g = law.pulls(on_log_c, layout.scalars(on_ladj), kept.h, kept.rate, x.shape[-1])
    on_wall = on_h * kept.at_wall
    along = on_wall * kept.slope
    on_v = (on_points * kept.c).addcmul_(kept.step, along)
    pull = None
    if kept.axis is not None and kept.room is not None:
        on_box = (on_h - on_wall) / kept.room
        on_v = on_v.scatter_add_(1, kept.axis, on_box)
        pull = on_box * kept.h
    turn = along * kept.h
    on_placed: tuple[Tensor | None, ...] = None, None, None
    on_weights = on_log_scale = None
    if any(needs[:3]):
        on_there = (kept.v * along).addcmul_(kept.step, turn, value=-1)
        on_here = (-on_v if law.out else on_points) - on_there
        if kept.axis is not None and pull is not None:
            on_here = on_here.scatter_add_(1, kept.axis, pull)
        on_anchors = layout.collected(cells.free, (kept.k, on_here), (kept.wall, on_there))
        on_placed = _displace(layout, kept, on_anchors, pull)
    if needs[3] and cells.weights is not None:
        on_weights = layout.scalars_collected(cells.weights.shape, (kept.wall, turn / 2), (kept.k, turn / -2))
    if needs[4]:
        on_log_scale = layout.scalars_collected(cells.log_scale.shape, (kept.k, on_log_g))
    return layout.back(on_v, x), *on_placed, on_weights, on_log_scale


def _placed(cells: Cells) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Anchors ([N,] K, D), as `Tessellation.anchors` has them; tanh(free); radius of the box, and a little less."""
    if cells.centre is None or cells.log_radius is None:
        return cells.free, None, None, None
    bent, radius = cells.free.tanh(), cells.log_radius.exp()
    inner = radius * (1 - KEPT_FROM_WALL)
    return torch.addcmul(cells.centre.unsqueeze(-2), inner.unsqueeze(-2), bent), bent, radius, inner


def _displace(layout: Columns, kept: Kept, on_anchors: Tensor, pull: Tensor | None) -> tuple[Tensor | None, ...]:
    """Gradients of free, centre and log_radius, from those of the anchors ([N,] K, D) and the pull of the box."""
    bent, radius, inner, axis, room = kept[-5:]
    if bent is None or radius is None or inner is None or axis is None or room is None or pull is None:
        return on_anchors, None, None
    on_free = torch.ops.aten.tanh_backward(on_anchors, bent) * inner.unsqueeze(-2)
    # The corner ahead, lo or hi, is told by the sign of the room.
    *shape, _, dim = on_anchors.shape
    corner = torch.add(axis, room > 0, alpha=dim).squeeze(1)
    on_lo, on_hi = layout.scalars_collected((*shape, 2 * dim), (corner, pull)).chunk(2, -1)
    on_centre = on_anchors.sum(-2) - on_lo - on_hi
    on_log_radius = torch.addcmul((on_anchors * bent).sum(-2) * inner, on_lo - on_hi, radius)
    if radius.dim() < on_centre.dim():
        on_centre, on_log_radius = on_centre.sum(0), on_log_radius.sum(0)
    return on_free, on_centre, on_log_radius
