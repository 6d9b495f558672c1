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

    >>> y, ladj = LinearLU(3, [2, 0, 1]).forward_and_ladj(torch.tensor([[0.0, 10.0, 20.0]]))
    >>> y.tolist(), ladj.tolist()
    ([[20.0, 0.0, 10.0]], [0.0])
    """

    permutation: Tensor | None

    def __init__(self, size: int, permutation: Sequence[int] | None = None):
        super().__init__()
        if permutation is not None and sorted(permutation) != list(range(size)):
            raise ValueError(f"permutation: got {list(permutation)}; expected each of 0, ..., {size - 1} once")
        self.factors = nn.Parameter(torch.zeros(size, size))
        self.shift = nn.Parameter(torch.zeros(size))
        self.register_buffer("permutation", None if permutation is None else torch.tensor(list(permutation)))

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        lower, upper = self._matrices()
        y = x @ (lower @ upper).mT
        y = y if self.permutation is None else y.index_select(-1, self.permutation)
        return y + self.shift, self._ladj(x)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        lower, upper = self._matrices()
        x = y - self.shift
        x = x if self.permutation is None else x.index_select(-1, self.permutation.argsort())
        rows = solve_triangular(lower.mT, x.reshape(-1, x.shape[-1]), upper=True, left=False, unitriangular=True)
        return solve_triangular(upper.mT, rows, upper=False, left=False).view_as(y), -self._ladj(y)

    def _matrices(self) -> tuple[Tensor, Tensor]:
        ones = torch.eye(len(self.factors), dtype=self.factors.dtype, device=self.factors.device)
        return self.factors.tril(-1) + ones, self.factors.triu(1) + self.factors.diagonal().exp().diag()

    def _ladj(self, x: Tensor) -> Tensor:
        return self.factors.trace().expand(x.shape[:-1])
