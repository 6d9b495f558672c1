"""tessella: likelihood models that join discrete and continuous data through learnable tessellations of space."""

from tessella.bijections import ActNorm, Bijection, CellBijection, Chain, Invert
from tessella.geometry import Box, Laguerre, Tessellation, Voronoi

__version__ = "0.1.0"

__all__ = ["ActNorm", "Bijection", "Box", "CellBijection", "Chain", "Invert", "Laguerre", "Tessellation", "Voronoi"]
