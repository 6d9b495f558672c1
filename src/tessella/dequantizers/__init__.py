"""From codes to points and back. One contract, `Dequantizer`; geometries are registered in `CELLS`."""

from tessella.dequantizers.cells import CELLS, Cells
from tessella.dequantizers.dequantizer import Dequantizer

__all__ = ["CELLS", "Cells", "Dequantizer"]
