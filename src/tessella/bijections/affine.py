"""Affine maps that depend on a context: elementwise by a network, of all coordinates by the index of a cell."""

import torch
from torch import Tensor, nn
from torch.linalg import cholesky, solve_triangular
from torch.nn.functional import embedding

from tessella import checks
from tessella.bijections.base import Bijection, sum_trailing
from tessella.bijections.elementwise import bounded_log_scale


class ContextAffine(Bijection):
    """y = x exp(s) + t,  (s, t) = net(context);  ladj = sum s. On a Gaussian base: a conditional Gaussian.

    Args:
        net: context -> (*batch, [N,] 2 D).
        event_dim: number of trailing dimensions of one point.
    """

    def __init__(self, net: nn.Module, event_dim: int = 1):
        super().__init__()
        self.net, self.event_dim = net, event_dim

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        log_scale, shift = self._coefficients(context, x)
        return x * log_scale.exp() + shift, sum_trailing(log_scale, self.event_dim)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        log_scale, shift = self._coefficients(context, y)
        return (y - shift) * (-log_scale).exp(), -sum_trailing(log_scale, self.event_dim)

    def _coefficients(self, context: Tensor | None, like: Tensor) -> tuple[Tensor, Tensor]:
        raw, shift = self.net(context).chunk(2, -1)
        return bounded_log_scale(raw).reshape(like.shape), shift.reshape(like.shape)


class CellAffine(Bijection):
    """y = exp(s_k) (1 + N_k) x + b_k,  N_k below the diagonal;  ladj = sum s_k. With a Gaussian: any covariance.

    One map of all coordinates for every cell k, the context of each call; all begin as the identity. The inverse of
    1 + N_k is a matrix of that form, too, so that each covariance and mean is that of exactly one such map.

    Args:
        cells: their number K.
        dim: D.

    >>> y, ladj = CellAffine(cells=2, dim=3).forward_and_ladj(torch.ones(4, 3), torch.tensor([0, 1, 1, 0]))
    >>> y.shape, ladj.tolist()
    (torch.Size([4, 3]), [0.0, 0.0, 0.0, 0.0])
    """

    _count: Tensor

    def __init__(self, cells: int, dim: int):
        super().__init__()
        self.factors = nn.Parameter(torch.zeros(cells, dim, dim))  # N_k, on its diagonal s_k; nothing above is read
        self.shifts = nn.Parameter(torch.zeros(cells, dim))
        self.register_buffer("_count", torch.tensor(cells), persistent=False)

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        cell = self._cell(x, context)
        factors, log_scale = self._coefficients(cell)
        turned = x + (factors @ x[..., None])[..., 0]
        return turned * log_scale.exp() + embedding(cell, self.shifts), log_scale.sum(-1)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        cell = self._cell(y, context)
        factors, log_scale = self._coefficients(cell)
        turned = ((y - embedding(cell, self.shifts)) * (-log_scale).exp())[..., None]
        return solve_triangular(factors, turned, upper=False, unitriangular=True)[..., 0], -log_scale.sum(-1)

    def everywhere(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Each point seen by the map of every cell: (*batch, D) -> (*batch, K, D), and the ladj of each, (K,)."""
        log_scale = self.factors.diagonal(dim1=-2, dim2=-1)
        turned = x[..., None, :] + torch.einsum("kij,...j->...ki", self.factors.tril(-1), x)
        return turned * log_scale.exp() + self.shifts, log_scale.sum(-1)

    @torch.no_grad()
    def whiten(self, means: Tensor, covariances: Tensor) -> None:
        """Give points of cell k, which have these means (K, D) and covariances (K, D, D), mean 0 and covariance 1."""
        lower: Tensor = cholesky(covariances)
        ones = torch.eye(means.shape[-1], dtype=means.dtype, device=means.device).expand_as(lower)
        whitening = solve_triangular(lower, ones, upper=False)
        scale = whitening.diagonal(dim1=-2, dim2=-1)
        self.factors.copy_((whitening / scale[..., None]).tril(-1) + scale.log().diag_embed())
        self.shifts.copy_(-(whitening @ means[..., None])[..., 0])

    def _cell(self, x: Tensor, cell: Tensor | None) -> Tensor:
        if cell is None:
            raise TypeError("context: got None; expected the cell index of every point, e.g. forward_and_ladj(x, cell)")
        cell = cell.expand(x.shape[:-1])
        checks.indices("context (cell)", cell, tuple(x.shape[:-1]), self._count)
        return cell

    def _coefficients(self, cell: Tensor) -> tuple[Tensor, Tensor]:
        """N_k, (*batch, D, D), and s_k, (*batch, D)."""
        factors = embedding(cell, self.factors.flatten(1)).unflatten(-1, self.factors.shape[1:])
        return factors.tril(-1), factors.diagonal(dim1=-2, dim2=-1)
