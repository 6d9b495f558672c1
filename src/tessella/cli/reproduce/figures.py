"""`tessella reproduce cell-map` and `tessella reproduce dequantizers`."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tessella import Voronoi


def dequantizers(out: Path = Path("runs/reproduce"), seed: int = 0) -> None:
    """Figure 3: the geometries of the dequantizers.

    Args:
        out: folder for the picture.
        seed: of the random cells.
    """
    from tessella.paper.figures.dequantizers import draw_dequantizers

    print(f"Figure 3: {draw_dequantizers(out / 'dequantizers.png', seed)}")


def cell_map(out: Path = Path("runs/reproduce"), seed: int = 2) -> None:
    """Figure 1: a density on the plane pushed into a cell of a tessellation, the audit of the map, other profiles.

    Args:
        out: folder for the picture.
        seed: of the tessellation and the audit's points.
    """
    from tessella import CellBijection
    from tessella.bijections.audit import audit_cells
    from tessella.paper.figures.cells import draw_map_into_cell, draw_profiles

    tessellation, cell, window = _nine_cells(seed), 4, (-3.2, 3.2, -3.2, 3.2)
    bijection = CellBijection(tessellation)
    print("A Voronoi tessellation of the plane, 9 cells in a box; the map into its cells, 100,000 points:\n")
    print(audit_cells(bijection.double()))
    print(f"\nFigure 1: {draw_map_into_cell(out / 'map-into-cell.png', bijection.float(), cell, window)}")
    profiles = draw_profiles(out / "profiles.png", tessellation, cell, (-1.7, 1.7, -2.0, 1.4), (1, 2, 8, 32))
    print(f"profiles of several powers: {profiles}")


def _nine_cells(seed: int) -> "Voronoi":
    import torch

    from tessella import Box, Voronoi

    torch.manual_seed(seed)
    step = torch.tensor([-2.0, 0.0, 2.0])
    anchors = torch.cartesian_prod(step, step) + 0.8 * (torch.rand(9, 2) - 0.5) * 2
    return Voronoi(anchors, box=Box.cube(3.0, 2))
