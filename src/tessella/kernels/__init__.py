"""Searches over cells: indices out, no gradients. Arrays are column-major in points: (G, D, M)."""

from tessella.kernels.search import CELLS_PER_BLOCK, active_box_wall, active_wall, nearest_anchor, squared_distances

__all__ = ["CELLS_PER_BLOCK", "active_box_wall", "active_wall", "nearest_anchor", "squared_distances"]
