"""Tessellations of space: where the cells are and how far away their walls."""

from tessella.geometry.box import Box
from tessella.geometry.kinds import Laguerre, Voronoi
from tessella.geometry.placements import PLACEMENTS, binary_dim
from tessella.geometry.polygons import polygons
from tessella.geometry.tessellation import Tessellation

__all__ = ["PLACEMENTS", "Box", "Laguerre", "Tessellation", "Voronoi", "binary_dim", "polygons"]
