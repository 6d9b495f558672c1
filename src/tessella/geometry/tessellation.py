"""What all learnable tessellations of R^D share: anchors, box, gauge; one per variable or shared by all.

Shapes. A *shared* tessellation has anchors (K, D) and works on points (*batch, D). One *per variable* has anchors
(N, K, D), each variable j with its own number of cells K_j <= K, and works on points (*batch, N, D). Cell indices
drop the last dimension. Inside, points are columns (G, D, M) as the kernels want them (G = N, or 1 when shared).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from tessella import checks
from tessella.geometry import kernels, search
from tessella.geometry.box import Box
from tessella.geometry.placements import PLACEMENTS

# Fraction by which anchors keep away from the box's walls, and Laguerre radii from the next anchor: a saturated tanh or
# sigmoid must not put an anchor on a wall.
KEPT_FROM_WALL = 1e-4


class Tessellation(nn.Module, ABC):
    """Cells { x : |x - x_k|^2 - w_k < |x - x_i|^2 - w_i for all i } around anchors x_k, cut by an optional box.

    Args:
        anchors: starting positions, (K, D) or (N, K, D).
        box: optional `Box`; anchors stay inside it while they learn. Without one, outer cells are unbounded.
        cells: number of cells of each variable, when they differ; rows of `anchors` beyond it are padding.
        learnable: whether the anchors are parameters.
    """

    free: Tensor  # what the anchors are computed from: themselves, or their share of the box before tanh
    _count: Tensor
    _offsets: Tensor | None

    def __init__(
        self, anchors: Tensor, box: Box | None = None, cells: Sequence[int] | None = None, learnable: bool = True
    ):
        super().__init__()
        _check_anchors(anchors, box, cells)
        self.shared = anchors.dim() == 2
        groups, most, self.dim = (anchors[None] if self.shared else anchors).shape
        self.counts = tuple(cells) if cells is not None else (most,) * groups
        self.box = box
        count = torch.tensor(self.counts)
        self.register_buffer("_count", count[0] if self.shared else count, persistent=False)
        absent = torch.arange(most) >= count[:, None]  # (G, K)
        offsets = torch.zeros(absent.shape, dtype=anchors.dtype).masked_fill(absent, -torch.inf)
        self.register_buffer("_offsets", offsets if bool(absent.any()) else None, persistent=False)
        free = self._to_free(anchors)
        if learnable:
            self.free = nn.Parameter(free)
        else:
            self.register_buffer("free", free)

    @classmethod
    def create(
        cls,
        cells: int | Sequence[int],
        dim: int,
        placement: str = "random",
        box: Box | None = None,
        learnable: bool = True,
        generator: Generator | None = None,
    ) -> Self:
        """Anchors placed by name (see `geometry.placements`).

        Args:
            cells: a number for a shared tessellation; a sequence for one per variable, with so many cells each.

        >>> from tessella import Voronoi
        >>> Voronoi.create([2, 5, 3], dim=4).anchors.shape
        torch.Size([3, 5, 4])
        """
        if placement not in PLACEMENTS:
            raise ValueError(f"placement: got {placement!r}; expected one of {', '.join(PLACEMENTS)}")
        for count in [cells] if isinstance(cells, int) else cells:
            if count < 1:
                raise ValueError(f"cells: got {count}; expected at least 1 cell for every variable")
        place = PLACEMENTS[placement]
        if isinstance(cells, int):
            return cls(_into(box, place(cells, dim, generator)), box, None, learnable)
        anchors = torch.zeros(len(cells), max(cells), dim)
        for j, count in enumerate(cells):
            anchors[j, :count] = place(count, dim, generator)
        return cls(_into(box, anchors), box, tuple(cells), learnable)

    @torch.no_grad()
    def move_anchors(self, anchors: Tensor) -> None:
        """Put the anchors elsewhere, (K, D) or (N, K, D); shrunk into the middle of the box where there is one."""
        if anchors.shape != self.free.shape:
            raise ValueError(f"anchors: got shape {tuple(anchors.shape)}; expected {tuple(self.free.shape)}")
        checks.finite("anchors", anchors)
        self.free.copy_(self._to_free(_into(self.box, anchors.to(self.free))))

    @abstractmethod
    def _weights(self, anchors: Tensor) -> Tensor | None:
        """Weights w (G, K) for anchors (G, D, K); -inf where a cell does not exist; None when all are 0."""

    def parts(self) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """What all else is computed from: free, centre and log_radius of the box, weights (G, K) or None for zeros."""
        return self.free, *((None, None) if self.box is None else (self.box.centre, self.box.log_radius)), self._offsets

    @property
    def anchors(self) -> Tensor:
        """Positions of the anchors, (K, D) or (N, K, D)."""
        if self.box is None:
            return self.free
        centre, radius = self.box.centre, self.box.log_radius.exp() * (1 - KEPT_FROM_WALL)
        return torch.addcmul(centre.unsqueeze(-2), radius.unsqueeze(-2), self.free.tanh())

    @property
    def weights(self) -> Tensor:
        """Laguerre weights w, (K,) or (N, K): zero for a Voronoi tessellation, -inf for padding."""
        anchors = self._anchor_columns()
        weights = self._weights(anchors)
        weights = anchors.new_zeros(anchors.shape[0], anchors.shape[2]) if weights is None else weights
        return weights[0] if self.shared else weights

    @torch.no_grad()
    def nearest(self, x: Tensor) -> Tensor:
        """argmin_k |x - x_k|^2 - w_k: the cell that holds each point. (*batch, [N,] D) -> (*batch, [N])."""
        self.check_points("x", x)
        columns = self.to_columns(x)
        if kernels.placing(columns, self.free.shape[-2]):
            cell = kernels.nearest_placed(columns, *self.parts())
        else:
            anchors = self._anchor_columns()
            cell = kernels.nearest_anchor(columns, anchors, self._weights(anchors), self.counts)
        return self.scalars_from_columns(cell, x.shape[:-1])

    def gauge(self, y: Tensor, cell: Tensor) -> Tensor:
        """h(y) = max(0, max_i n_i . y): 0 at the anchor, 1 on the wall, 2 twice as far out.

        Args:
            y: displacement from the anchor of `cell`, (*batch, [N,] D).
            cell: (*batch, [N]).

        >>> from tessella import Voronoi
        >>> t = Voronoi(torch.tensor([[-1.0], [1.0]]))
        >>> t.gauge(torch.tensor([[0.5], [-7.0]]), torch.tensor([0, 0]))
        tensor([0.5000, 0.0000], grad_fn=<ViewBackward0>)
        """
        self.check_points("y", y)
        self.check_cells("cell", cell, y)
        _, h = self.anchor_and_gauge(self.to_columns(y), self.scalars_to_columns(cell))
        return self.scalars_from_columns(h, y.shape[:-1])

    def anchor_of(self, cell: Tensor) -> Tensor:
        """x_k for each cell index: (*batch, [N]) -> (*batch, [N,] D)."""
        checks.indices("cell", cell, tuple(cell.shape), self._count)
        return self.from_columns(self.anchor_columns(self.scalars_to_columns(cell)), (*cell.shape, self.dim))

    def anchor_columns(self, cell: Tensor) -> Tensor:
        """x_k (G, D, M) for columns of cell indices (G, M)."""
        return take(self._anchor_columns(), cell)

    def anchor_and_gauge(self, y: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """x_k (G, D, M) and h(y) (G, M), for columns y (G, D, M) and cell (G, M).

        The active wall is searched without gradients; only its value is computed with them. What backward keeps is
        O(D) per point, whatever the number of cells.
        """
        anchors = self._anchor_columns()
        weights = self._weights(anchors)
        wall = kernels.active_wall(y, cell, anchors, weights, self.counts)
        here = take(anchors, cell)
        step = take(anchors, wall) - here  # x_i - x_k, exact zero when no wall is ahead
        margin = (step * step).sum(1)
        if weights is not None:
            margin = margin - weights.gather(1, wall) + weights.gather(1, cell)
        # margin = 0: no wall ahead (the numerator is 0 too), or a coincident anchor, which `check` names.
        h = 2 * (step * y).sum(1) / functional.threshold(margin, 0, 1)
        if self.box is None:
            return here, h.relu()  # and no gradient at 0: a wall that is not there must not pull on the anchors
        return here, torch.maximum(h, self._box_gauge(self.box, y, here))

    def _box_gauge(self, box: Box, y: Tensor, here: Tensor) -> Tensor:
        """max_j max(y_j / (hi_j - x_kj), y_j / (lo_j - x_kj)), which is never negative."""
        lo, hi = (corner.reshape(-1, self.dim).expand(y.shape[0], -1) for corner in box.bounds())  # (G, D)
        j = search.active_box_wall(y, (torch.where(y > 0, hi[..., None], lo[..., None]) - here).detach())
        ahead, j = y.gather(1, j)[:, 0], j[:, 0]
        corner = torch.where(ahead > 0, hi.gather(1, j), lo.gather(1, j))
        return ahead / (corner - here.gather(1, j[:, None])[:, 0])

    def spacing(self) -> Tensor:
        """Distance from each anchor to the nearest other one, (K,) or (N, K); 0 for padding and where there is none."""
        d = self._spacing(self._anchor_columns())
        return d[0] if self.shared else d

    def _spacing(self, anchors: Tensor) -> Tensor:
        """d_k: distance to the nearest other anchor (0 where there is none), with gradients; (G, K)."""
        if anchors.shape[-1] == 1:
            return torch.zeros_like(anchors[:, 0])
        other = self._nearest_other(anchors.detach())
        gap = anchors - take(anchors, other)
        return (gap * gap).sum(1).add(torch.finfo(gap.dtype).tiny).sqrt()

    def _nearest_other(self, anchors: Tensor) -> Tensor:
        """Index of the nearest other anchor; the cell itself for padding and for variables with one cell."""
        rows = []
        own = torch.arange(anchors.shape[-1], device=anchors.device)
        for block in own.split(search.CELLS_PER_BLOCK):
            gap = search.squared_distances(anchors[..., block], anchors)
            gap = gap.masked_fill(block[:, None] == own, torch.inf)
            if self._offsets is not None:
                gap = gap - self._offsets[:, None] - self._offsets[:, block, None]
            closest, index = gap.min(-1)
            rows.append(torch.where(closest.isinf(), block, index))
        return torch.cat(rows, 1)

    def check(self) -> None:
        """Raise if a cell is empty because its anchor coincides with another; say which.

        Learning never puts two anchors exactly together, but starting positions or low precision may.
        """
        anchors = self._anchor_columns().detach()
        for g, count in enumerate(self.counts):
            points = anchors[g, :, :count].mT  # (K, D)
            _, inverse, times = points.unique(dim=0, return_inverse=True, return_counts=True)
            if bool((times > 1).any()):
                twins = (inverse == (times > 1).nonzero()[0]).nonzero().flatten().tolist()
                variable = "" if self.shared else f" of variable {g}"
                raise ValueError(
                    f"anchors: cells {twins}{variable} share one anchor, so they are empty; move them apart"
                )

    def check_points(self, name: str, x: Tensor) -> None:
        """Points of this tessellation: dtype, shape, finite."""
        checks.floating(name, x, self.free.dtype)
        if self.shared:
            checks.trailing(name, x, (self.dim,), "D")
        else:
            checks.trailing(name, x, (len(self.counts), self.dim), "N, D")
        checks.finite(name, x)

    def check_cells(self, name: str, cell: Tensor, x: Tensor) -> None:
        """One valid cell index for every point of x."""
        checks.indices(name, cell, tuple(x.shape[:-1]), self._count)

    def to_columns(self, x: Tensor) -> Tensor:
        """(*batch, [N,] D) -> (G, D, M)."""
        return x.reshape(-1, 1 if self.shared else x.shape[-2], self.dim).permute(1, 2, 0).contiguous()

    def from_columns(self, columns: Tensor, shape: tuple[int, ...]) -> Tensor:
        """(G, D, M) -> shape (*batch, [N,] D)."""
        return columns.permute(2, 0, 1).reshape(shape)

    def scalars_to_columns(self, values: Tensor) -> Tensor:
        """(*batch, [N]) -> (G, M)."""
        return values.reshape(-1, 1 if self.shared else values.shape[-1]).mT.contiguous()

    def scalars_from_columns(self, columns: Tensor, shape: tuple[int, ...]) -> Tensor:
        """(G, M) -> shape (*batch, [N])."""
        return columns.mT.reshape(shape)

    def _anchor_columns(self) -> Tensor:
        anchors = self.anchors
        return (anchors[None] if self.shared else anchors).mT.contiguous()  # (G, D, K)

    def _to_free(self, anchors: Tensor) -> Tensor:
        """Inverse of the `anchors` property."""
        if self.box is None:
            return anchors.detach().clone()
        centre, log_radius = (part.detach().unsqueeze(-2) for part in (self.box.centre, self.box.log_radius))
        share = (anchors - centre) / (log_radius.exp() * (1 - KEPT_FROM_WALL))
        if bool((share.abs() >= 1).any()):
            raise ValueError("anchors: some lie on or outside the box; expected all strictly inside it")
        return share.atanh()

    def extra_repr(self) -> str:
        cells = self.counts[0] if self.shared else list(self.counts)
        return f"cells={cells}, dim={self.dim}, learnable={isinstance(self.free, nn.Parameter)}"


def take(columns: Tensor, index: Tensor) -> Tensor:
    """(G, D, K)[index (G, M)] -> (G, D, M)."""
    return columns.gather(2, index[:, None].expand(-1, columns.shape[1], -1))


def _into(box: Box | None, anchors: Tensor) -> Tensor:
    """Placed anchors, shrunk and shifted into the middle half of a box."""
    if box is None:
        return anchors
    lo, hi = (corner.detach().unsqueeze(-2) for corner in box.bounds())
    return ((lo + hi) / 2 + (hi - lo) / 4 * anchors / anchors.abs().max().clamp_min(1)).to(lo.dtype)


def _check_anchors(anchors: Tensor, box: Box | None, cells: Sequence[int] | None) -> None:
    checks.floating("anchors", anchors)
    if anchors.dim() not in (2, 3) or 0 in anchors.shape:
        raise ValueError(f"anchors: got shape {tuple(anchors.shape)}; expected (K, D) or (N, K, D), K >= 1 and D >= 1")
    checks.finite("anchors", anchors)
    shape = tuple(anchors.shape)
    if cells is not None:
        if anchors.dim() != 3 or len(cells) != shape[0]:
            raise ValueError(
                f"cells: got {len(cells)} numbers for anchors of shape {shape}; "
                "expected one per variable, anchors (N, K, D)"
            )
        for j, count in enumerate(cells):
            if not 1 <= count <= shape[1]:
                raise ValueError(f"cells: got {count} for variable {j}; expected 1 <= cells <= K = {shape[1]}")
    if box is not None:
        checks.floating("box", box.centre, anchors.dtype)
        corners = tuple(box.centre.shape)
        if corners not in {shape[-1:], shape[:-2] + shape[-1:]}:
            raise ValueError(f"box: got corners of shape {corners} for anchors {shape}; expected (D,) or (N, D)")
