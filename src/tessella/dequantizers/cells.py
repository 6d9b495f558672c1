"""The geometries of dequantization: which region of space belongs to which category.

A geometry maps noise u (B, N, D) into the regions of the codes (B, N) by a bijection for each code, and tells the code
of any point. Variables may have different numbers of categories. A geometry that needs D_j dimensions for variable j
leaves the other D - D_j free: they carry noise that the density models too, which keeps the bound valid (an augmented
flow).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tessella.configs import Choice

# A point that rounding carried over a wall is projected into its region: so far back towards the middle.
PROJECTED = 1e-3


class Cells(nn.Module, ABC):
    """Regions R_1, ..., R_K of R^D for every variable, with a bijection R^D <-> R_k for each."""

    counts: tuple[int, ...]
    dim: int
    degrees: float = 1
    """Of Student's t whose image in a region neither vanishes nor grows at the walls."""

    @abstractmethod
    def forward(self, u: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Noise u (B, N, D) -> points of the regions, and the log-determinant per variable (B, N)."""

    @abstractmethod
    def inverse(self, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """The inverse of `forward`, with the log-determinant of the inverse (B, N)."""

    @abstractmethod
    def quantize(self, x: Tensor) -> Tensor:
        """The code of the region that holds each point: (B, N, D) -> (B, N)."""

    @abstractmethod
    def centre(self, codes: Tensor) -> Tensor:
        """A point well inside each region: (B, N) -> (B, N, D)."""

    def arrange(self, codes: Tensor) -> None:
        """Move regions that can be moved to where training rows (B, N) suggest; fixed geometries stay."""


class CellsConfig(Choice, ABC):
    """What is chosen about the regions of the categories."""

    @abstractmethod
    def build(self, counts: Sequence[int], least: int = 1) -> Cells:
        """For variables of so many categories each; of `least` dimensions or more where they follow from the counts."""


def projected(cells: Cells, x: Tensor, codes: Tensor) -> Tensor:
    """Undo what rounding did: a point across a wall goes back by a little, and to the middle if that fails."""
    with torch.no_grad():
        centre = cells.centre(codes).to(x.dtype)
        back = centre + (1 - PROJECTED) * (x - centre)
        back = torch.where((cells.quantize(back) == codes)[..., None], back, centre)
        missed = (cells.quantize(x) != codes)[..., None]
    return torch.where(missed, back, x)
