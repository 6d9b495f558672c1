"""Linear map of vectors whose determinant and inverse cost as much as those of triangular matrices."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.linalg import solve_triangular

from tessella.bijections.base import Bijection


class LinearLU(Bijection):
    """y = P L U x + shift;  ladj = sum_i log U_ii, for L with ones on its diagonal, U_ii = exp(a_ii).

    L and U lie in one matrix a, as in LAPACK: below its diagonal, above it, and on it the logarithms of that of U. It
    starts as 0, and the map as y = P x, the identity unless a permutation is given.

    Args:
        size: D.
        permutation: (P x)_i = x_permutation[i], e.g. torch.randperm(D).tolist(); saved with the weights. None: P = 1.
        variables: points are (N, D) and each of the N variables has a map of its own; 0: points are (D,).

    >>> y, ladj = LinearLU(3, [2, 0, 1]).forward_and_ladj(torch.tensor([[0.0, 10.0, 20.0]]))
    >>> y.tolist(), ladj.tolist()
    ([[20.0, 0.0, 10.0]], [0.0])
    """

    permutation: Tensor | None

    def __init__(self, size: int, permutation: Sequence[int] | None = None, variables: int = 0):
        super().__init__()
        if permutation is not None and sorted(permutation) != list(range(size)):
            raise ValueError(f"permutation: got {list(permutation)}; expected each of 0, ..., {size - 1} once")
        several = (variables,) if variables else ()
        self.event_dim = 1 + len(several)
        self.factors = nn.Parameter(torch.zeros(*several, size, size))
        self.shift = nn.Parameter(torch.zeros(*several, size))
        self.register_buffer("permutation", None if permutation is None else torch.tensor(list(permutation)))

    def check_tables(self) -> None:
        """The permutation is one."""
        if self.permutation is not None and sorted(self.permutation.tolist()) != list(range(self.shift.shape[-1])):
            raise ValueError(f"permutation: got {self.permutation.tolist()}; expected each of 0, ..., D - 1 once")

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        lower, upper = self._matrices()
        y = self._rows(x) @ (lower @ upper).mT
        y = y if self.permutation is None else y.index_select(-1, self.permutation)
        return self._points(y, x) + self.shift, self._ladj(x)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        lower, upper = self._matrices()
        x = self._rows(y - self.shift)
        x = x if self.permutation is None else x.index_select(-1, self.permutation.argsort())
        x = solve_triangular(lower.mT, x, upper=True, left=False, unitriangular=True)
        return self._points(solve_triangular(upper.mT, x, upper=False, left=False), y), -self._ladj(y)

    def _rows(self, x: Tensor) -> Tensor:
        """Points as rows of one matrix, (B, D), or of one for each variable, (N, B, D)."""
        return x.reshape(-1, *self.shift.shape).movedim(0, -2)

    def _points(self, rows: Tensor, like: Tensor) -> Tensor:
        """The inverse of `_rows`."""
        return rows.movedim(-2, 0).reshape(like.shape)

    def _matrices(self) -> tuple[Tensor, Tensor]:
        ones = torch.eye(self.factors.shape[-1], dtype=self.factors.dtype, device=self.factors.device)
        diagonal = self.factors.diagonal(dim1=-2, dim2=-1).exp().diag_embed()
        return self.factors.tril(-1) + ones, self.factors.triu(1) + diagonal

    def _ladj(self, x: Tensor) -> Tensor:
        total = self.factors.diagonal(dim1=-2, dim2=-1).sum()
        return total.expand(x.shape[: x.dim() - self.event_dim])
