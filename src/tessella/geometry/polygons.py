"""Cells of a planar tessellation as polygons, for pictures."""

import torch
from torch import Tensor

from tessella.geometry.tessellation import Tessellation


def polygons(tessellation: Tessellation, window: tuple[float, float, float, float], variable: int = 0) -> list[Tensor]:
    """Corners of every cell, clipped to a window; unbounded cells end at its border.

    Start from the window (or its overlap with the box) and cut away, one wall at a time, the side on which another
    anchor is nearer.

    Args:
        tessellation: any tessellation of the plane (D = 2).
        window: (left, right, bottom, top).
        variable: which variable's cells, when there is one tessellation per variable.

    Returns:
        For each cell its corners (V, 2) in counter-clockwise order; (0, 2) where the cell misses the window.

    >>> from tessella import Voronoi
    >>> [len(p) for p in polygons(Voronoi(torch.tensor([[-1.0, 0.0], [1.0, 0.0]])), (-2, 2, -2, 2))]
    [4, 4]
    """
    if tessellation.dim != 2:
        raise ValueError(f"tessellation: got dimension {tessellation.dim}; expected 2, polygons are for the plane")
    with torch.no_grad():
        anchors, weights = tessellation.anchors, tessellation.weights
        if not tessellation.shared:
            anchors, weights = anchors[variable], weights[variable]
        count = tessellation.counts[0 if tessellation.shared else variable]
        anchors, weights = anchors[:count].double().cpu(), weights[:count].double().cpu()
        frame = _frame(tessellation, window, variable)
        return [_cell(frame, anchors, weights, k) for k in range(count)]


def _frame(tessellation: Tessellation, window: tuple[float, float, float, float], variable: int) -> Tensor:
    left, right, bottom, top = window
    if tessellation.box is not None:
        lo, hi = (
            corner.reshape(-1, 2)[variable if corner.dim() == 2 else 0].tolist() for corner in tessellation.box.bounds()
        )
        left, bottom, right, top = max(left, lo[0]), max(bottom, lo[1]), min(right, hi[0]), min(top, hi[1])
    return torch.tensor([[left, bottom], [right, bottom], [right, top], [left, top]], dtype=torch.float64)


def _cell(frame: Tensor, anchors: Tensor, weights: Tensor, k: int) -> Tensor:
    polygon = frame
    for i in range(len(anchors)):
        if i != k and len(polygon):
            step = anchors[i] - anchors[k]
            margin = step.square().sum() - weights[i] + weights[k]
            polygon = _clip(polygon, 2 * step, margin + 2 * step @ anchors[k])
    return polygon


def _clip(polygon: Tensor, normal: Tensor, offset: Tensor) -> Tensor:
    """The part of a convex polygon with normal . x <= offset."""
    ahead = polygon @ normal - offset
    kept: list[Tensor] = []
    for v in range(len(polygon)):
        here, there = ahead[v], ahead[(v + 1) % len(polygon)]
        if here <= 0:
            kept.append(polygon[v])
        if (here < 0 < there) or (there < 0 < here):
            kept.append(polygon[v] + (polygon[(v + 1) % len(polygon)] - polygon[v]) * here / (here - there))
    return torch.stack(kept) if kept else polygon[:0]
