"""Measure, on random points, that a cell bijection is what it claims to be."""

from dataclasses import dataclass

import torch
from torch.func import jacrev, vmap

from tessella.bijections.cell import CellBijection


@dataclass(frozen=True)
class CellAudit:
    """Largest errors over the points tried."""

    points: int
    round_trip: float
    log_determinant: float
    misses: int

    def __str__(self) -> str:
        return (
            f"round trip      |f^-1(f(y)) - y|       at most {self.round_trip:.1e}\n"
            f"log-determinant |closed form - autograd| at most {self.log_determinant:.1e}\n"
            f"images          {self.misses} of {self.points:,} outside their own cell"
        )


@torch.no_grad()
def audit_cells(bijection: CellBijection, points: int = 100_000, jacobians: int = 1_000) -> CellAudit:
    """Round trip and cell membership on `points` draws, the log-determinant against autograd on `jacobians` of them."""
    tessellation = bijection.tessellation
    cell = torch.stack([torch.randint(count, (points,)) for count in tessellation.counts], -1)
    cell = cell[:, 0] if tessellation.shared else cell
    y = torch.randn(*cell.shape, tessellation.dim, dtype=tessellation.free.dtype)
    z, ladj = bijection.forward_and_ladj(y, cell)
    back, _ = bijection.inverse_and_ladj(z, cell)
    few = slice(0, jacobians)
    jacobian = vmap(jacrev(lambda p, k: bijection.forward_and_ladj(p, k)[0]))(y[few], cell[few])
    size = y[0].numel()
    numerical = torch.linalg.slogdet(jacobian.reshape(-1, size, size))[1]
    return CellAudit(
        points=points,
        round_trip=float((back - y).abs().max()),
        log_determinant=float((ladj[few].reshape(len(numerical), -1).sum(-1) - numerical).abs().max()),
        misses=int((tessellation.nearest(z) != cell).sum()),
    )
