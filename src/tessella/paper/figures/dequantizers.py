"""Figure 3 of the paper: the classical dequantizers as tessellations with fixed anchors, beside a learned kind."""

from pathlib import Path

import torch

from tessella.geometry import Laguerre, Tessellation, Voronoi
from tessella.paper.figures.cells import draw_tessellation
from tessella.paper.figures.style import bare, new_figure, save


def draw_dequantizers(path: Path, seed: int = 0) -> Path:
    """Ordinal, simplex, binary argmax, Voronoi and Laguerre cells in the plane."""
    generator = torch.Generator().manual_seed(seed)
    laguerre = Laguerre.create(9, 2, generator=generator)
    with torch.no_grad():
        laguerre.rho.normal_(std=3.0, generator=generator)
    kinds: dict[str, Tessellation] = {
        "ordinal": Voronoi.create(5, 2, "line", learnable=False),
        "simplex": Voronoi.create(3, 2, "simplex", learnable=False),
        "binary argmax": Voronoi.create(4, 2, "hypercube", learnable=False),
        "Voronoi": Voronoi.create(9, 2, generator=generator),
        "Laguerre": laguerre,
    }
    figure, panels = new_figure(len(kinds), panel=(2.6, 2.8))
    for axes, (name, tessellation) in zip(panels, kinds.items(), strict=True):
        draw_tessellation(axes, tessellation, (-2.6, 2.6, -2.6, 2.6))
        bare(axes, name)
    return save(figure, path)
