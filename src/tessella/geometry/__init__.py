"""Tessellations of space: where the cells are and how far away their walls."""

from tessella.geometry.box import Box
from tessella.geometry.placements import PLACEMENTS, binary_dim
from tessella.geometry.polygons import polygons
from tessella.geometry.tessellation import Laguerre, Tessellation, Voronoi

__all__ = ["PLACEMENTS", "Box", "Laguerre", "Tessellation", "Voronoi", "binary_dim", "polygons"]
