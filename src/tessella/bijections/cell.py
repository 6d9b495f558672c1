"""The homeomorphism between R^D and a cell of a tessellation."""

from types import ModuleType

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella import checks
from tessella.bijections import cell_map
from tessella.bijections.base import Bijection
from tessella.bijections.squashing import Profile, Squashing, power, profile_of
from tessella.geometry import Tessellation, kernels


class CellBijection(Bijection):
    """f_k(y) = x_k + y a(s) / h,  s = g h(y),  log|det| = D log g + (D - 1) log(a(s) / s) + log a'(s).

    y is the displacement from the anchor: the paper's f_k at the point x_k + y. Measured so, points close to the anchor
    keep all their digits. Points move along rays only, hence the closed-form determinant (docs/mathematics.md). Its
    inverse reads the same gauge t = h(z - x_k) in [0, 1) and sets y = (z - x_k) a^-1(t) / (g t).

    Args:
        tessellation: whose cells; one cell index per point (or one for all) is the `context` of every call.
        squashing: the profile a, by its name or its power p (see `bijections.squashing`).
        learn_scale: learn log g per cell (the paper's gamma_k); otherwise g = 1.
        learn_power: learn p, one for all cells, from the power given.
        steady: of gradients through the inverse, those of t are multiplied by min(1, (1 - t) / steady); values are
            exact. A log-density of y changes with the place of the wall like 1 / (1 - t), and where p > 2 the tail of
            Student's t takes that back only in the limit: gradients of the few points close to walls then have no
            finite variance, and drown all others (docs/mixtures.md). 0 leaves gradients alone.

    >>> from tessella import Voronoi
    >>> f = CellBijection(Voronoi(torch.tensor([[-1.0], [1.0]])))
    >>> z, ladj = f.forward_and_ladj(torch.tensor([[0.0], [9.0]]), torch.tensor([0, 0]))
    >>> [round(point, 4) for point in z.flatten().tolist()]  # the anchor, and a point left of the wall at 0
    [-1.0, -0.1]
    """

    log_scale: Tensor
    raw_power: nn.Parameter | None

    def __init__(
        self,
        tessellation: Tessellation,
        squashing: Profile = "softsign",
        learn_scale: bool = True,
        learn_power: bool = False,
        steady: float = 0.0,
    ):
        super().__init__()
        self.tessellation, self.squashing, self.steady = tessellation, squashing, steady
        start = profile_of(squashing)
        self.register_parameter("raw_power", _raw_power(start) if learn_power else None)
        log_scale = torch.zeros_like(tessellation.free[..., 0])
        if learn_scale:
            self.log_scale = nn.Parameter(log_scale)
        else:
            self.register_buffer("log_scale", log_scale)

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Displacements x (*batch, [N,] D), cells (*batch, [N]) -> points in those cells, ladj (*batch, [N])."""
        cell = self._cell("x", x, context)
        if (parts := self._parts()) is not None:
            return self._mapped(x, cell, parts, out=False)
        y, cell, log_g = self._columns(x, cell)
        here, h = self.tessellation.anchor_and_gauge(y, cell)
        g = log_g.exp()
        a, s = self.profile(), g * h
        z = torch.addcmul(here, y, (g * a.shrink(s))[:, None])
        return self._points(z, self._ladj(a, log_g, s), x)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Points y inside the cells (*batch, [N]) -> displacements, ladj of the inverse.

        A point on or beyond a wall (which only rounding produces) is treated as one at a slack of the dtype's eps, so
        the result is finite; `outside` counts such points.
        """
        cell = self._cell("y", y, context)
        if (parts := self._parts()) is not None:
            return self._mapped(y, cell, parts, out=True)
        z, cell, log_g = self._columns(y, cell)
        step = z - self.tessellation.anchor_columns(cell)
        _, t = self.tessellation.anchor_and_gauge(step, cell)
        slack = (1 - t).clamp_min(torch.finfo(t.dtype).eps)
        if self.steady:
            slack = cell_map.slowed(slack, self.steady)
        a = self.profile()
        s = a.undo(1 - slack, slack)
        x = step / (log_g.exp() * a.shrink(s))[:, None]
        return self._points(x, -self._ladj(a, log_g, s), y)

    def profile(self) -> Squashing:
        """The profile a, of the power p = 1 + softplus(raw) where that is learned."""
        if self.raw_power is None:
            return profile_of(self.squashing)
        return power(1 + functional.softplus(self.raw_power))

    def outside(self, y: Tensor, cell: Tensor) -> Tensor:
        """Which points (*batch, [N,] D) lie on or beyond the walls of their cell, for audits."""
        return self.tessellation.gauge(y - self.tessellation.anchor_of(cell), cell) >= 1

    def _ladj(self, a: Squashing, log_g: Tensor, s: Tensor) -> Tensor:
        dim = self.tessellation.dim
        return dim * log_g + a.log_volume(s, dim)

    def _parts(self) -> cell_map.Cells | None:
        """What `cell_map` needs; None where it has no such map, or a compiler or a transform looks into this one."""
        if self.raw_power is not None or profile_of(self.squashing).power is None or checks.followed():
            return None
        return cell_map.Cells(*self.tessellation.parts(), self.log_scale)

    def _mapped(self, x: Tensor, cell: Tensor, parts: cell_map.Cells, out: bool) -> tuple[Tensor, Tensor]:
        """The map of `forward_and_ladj`, or of `inverse_and_ladj`, as one operation."""
        program: ModuleType = cell_map
        if kernels.wanted(x, cell.numel() * max(self.tessellation.counts)):
            from tessella.bijections import cell_triton

            program = cell_triton if cell_triton.covers(x) else cell_map
        law = cell_map.Power(profile_of(self.squashing).power or 1, out, self.steady)
        image, ladj = cell_map.CellMap.apply(program, law, self.tessellation.counts, x, cell, *parts)
        return image, ladj

    def _cell(self, name: str, x: Tensor, cell: Tensor | None) -> Tensor:
        """The cell of every point, checked as the points are."""
        if cell is None:
            raise TypeError("context: got None; expected the cell index of every point, e.g. forward_and_ladj(x, cell)")
        self.tessellation.check_points(name, x)
        if cell.dim() == 0:
            cell = cell.expand(x.shape[:-1])
        self.tessellation.check_cells("context (cell)", cell, x)
        return cell

    def _columns(self, x: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        columns = self.tessellation.scalars_to_columns(cell)
        log_scale = self.log_scale[None] if self.tessellation.shared else self.log_scale
        return self.tessellation.to_columns(x), columns, log_scale.gather(1, columns)

    def _points(self, columns: Tensor, ladj: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        t = self.tessellation
        return t.from_columns(columns, like.shape), t.scalars_from_columns(ladj, like.shape[:-1])

    def extra_repr(self) -> str:
        return f"squashing={self.squashing}"


def _raw_power(start: Squashing) -> nn.Parameter:
    """softplus^-1(p - 1), for p a little above 1 at least."""
    if start.degrees is None:
        raise ValueError("learn_power: got a profile that is no power; expected one, e.g. 8.0")
    return nn.Parameter(torch.tensor(max(start.degrees - 1, 1e-2)).expm1().log())
