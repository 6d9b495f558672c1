"""How the points of `cell_map` lie in memory. Coordinates are dimension 1: a scalar has one, an index has none.

`Columns` have points last: sums over few coordinates run over contiguous memory, and so do look-ups. With one
tessellation of many dimensions a CPU would rather copy whole rows than look every coordinate up: `Rows`.
"""

from collections.abc import Sequence

from torch import Tensor

from tessella.geometry import kernels
from tessella.geometry.tessellation import take

ROWS_FROM = 32  # dimensions


class Columns:
    """Points (G, D, M), scalars (G, 1, M), indices (G, M), anchors (G, D, K).

    Args:
        groups: G.
    """

    def __init__(self, groups: int):
        self.groups = groups

    def points(self, x: Tensor) -> Tensor:
        """From (*batch, [N,] D)."""
        return x.reshape(-1, self.groups, x.shape[-1]).permute(1, 2, 0).contiguous()

    def scalars(self, values: Tensor) -> Tensor:
        """From (*batch, [N])."""
        return self.index(values).unsqueeze(1)

    def index(self, cell: Tensor) -> Tensor:
        """From (*batch, [N])."""
        return cell.reshape(-1, self.groups).mT.contiguous()

    def back(self, points: Tensor, like: Tensor) -> Tensor:
        """To (*batch, [N,] D); scalars to (*batch, [N])."""
        return points.permute(2, 0, 1).reshape(like.shape)

    def anchors(self, anchors: Tensor) -> Tensor:
        """From ([N,] K, D)."""
        return anchors.reshape(self.groups, -1, anchors.shape[-1]).mT.contiguous()

    def corner(self, values: Tensor) -> Tensor:
        """([N,] D), as it is added to points."""
        return values.reshape(-1, values.shape[-1], 1)

    def at(self, anchors: Tensor, index: Tensor) -> Tensor:
        """The anchor of every point."""
        return take(anchors, index)

    def scalar_at(self, values: Tensor, index: Tensor) -> Tensor:
        """The value of every point, from those of the cells ([N,] K)."""
        return values.reshape(self.groups, -1).gather(1, index).unsqueeze(1)

    def collected(self, like: Tensor, *pulls: tuple[Tensor, Tensor]) -> Tensor:
        """Points, each added to the anchor that its index names: ([N,] K, D), the shape of `like`."""
        total = pulls[0][1].new_zeros(self.groups, like.shape[-1], like.shape[-2])
        for index, columns in pulls:
            total.scatter_add_(2, index.unsqueeze(1).expand_as(columns), columns)
        return total.mT.reshape(like.shape)

    def scalars_collected(self, shape: Sequence[int], *pulls: tuple[Tensor, Tensor]) -> Tensor:
        """Scalars, each added to the place that its index names: ([N,] K) for any K."""
        total = pulls[0][1].new_zeros(self.groups, shape[-1])
        for index, scalars in pulls:
            total.scatter_add_(1, index, scalars.squeeze(1))
        return total.reshape(shape)

    def active_wall(
        self, v: Tensor, k: Tensor, anchors: Tensor, weights: Tensor | None, counts: tuple[int, ...]
    ) -> Tensor:
        """As `kernels.active_wall`."""
        return kernels.active_wall(v, k, anchors, weights, counts)


class Rows(Columns):
    """Points (M, D), scalars (M, 1), indices (M), anchors (K, D): G is 1."""

    def __init__(self) -> None:
        super().__init__(1)

    def points(self, x: Tensor) -> Tensor:
        return x.reshape(-1, x.shape[-1])

    def scalars(self, values: Tensor) -> Tensor:
        return values.reshape(-1, 1)

    def index(self, cell: Tensor) -> Tensor:
        return cell.reshape(-1)

    def back(self, points: Tensor, like: Tensor) -> Tensor:
        return points.view_as(like)

    def anchors(self, anchors: Tensor) -> Tensor:
        return anchors.reshape(-1, anchors.shape[-1])

    def corner(self, values: Tensor) -> Tensor:
        return values.reshape(-1)

    def at(self, anchors: Tensor, index: Tensor) -> Tensor:
        return anchors.index_select(0, index)

    def scalar_at(self, values: Tensor, index: Tensor) -> Tensor:
        return values.reshape(-1, 1).index_select(0, index)

    def collected(self, like: Tensor, *pulls: tuple[Tensor, Tensor]) -> Tensor:
        total = pulls[0][1].new_zeros(like.shape)
        for index, rows in pulls:
            total.view(-1, rows.shape[1]).index_add_(0, index, rows)
        return total

    def scalars_collected(self, shape: Sequence[int], *pulls: tuple[Tensor, Tensor]) -> Tensor:
        total = pulls[0][1].new_zeros(shape)
        for index, scalars in pulls:
            total.view(-1).index_add_(0, index, scalars.squeeze(1))
        return total

    def active_wall(
        self, v: Tensor, k: Tensor, anchors: Tensor, weights: Tensor | None, counts: tuple[int, ...]
    ) -> Tensor:
        return kernels.active_wall(v.mT[None], k[None], anchors.mT[None], weights, counts)[0]


def layout_of(x: Tensor, groups: int) -> Columns:
    """What suits points (*batch, [N,] D) in so many tessellations."""
    return Rows() if groups == 1 and x.shape[-1] >= ROWS_FROM and x.device.type == "cpu" else Columns(groups)
