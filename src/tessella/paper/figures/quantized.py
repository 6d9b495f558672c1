"""Figures 4 and 5 of the paper: quantized 2-D data, its model, and the tessellation that was learned."""

from pathlib import Path

import torch
from torch import Tensor

from tessella.dequantizers.learned import VoronoiCells
from tessella.models import SemiDiscrete
from tessella.paper.figures.cells import Window, draw_tessellation
from tessella.paper.figures.style import DENSITY, bare, new_figure, save


def draw_quantized(path: Path, target: Tensor, samples: Tensor, model: Tensor, title: str) -> Path:
    """Target, samples of the model, probabilities of the model, side by side; all (bins, bins)."""
    figure, panels = new_figure(3)
    top = float(target.max())
    for axes, image, name in zip(panels, (target, samples, model), ("target", "samples", "model"), strict=True):
        axes.imshow(image.numpy().T, origin="lower", cmap=DENSITY, vmin=0, vmax=top)
        bare(axes, name)
    figure.suptitle(title, fontsize=11)
    return save(figure, path)


@torch.no_grad()
def draw_learned_cells(path: Path, model: SemiDiscrete, samples: int = 3000) -> Path:
    """The learned tessellation of each variable with samples of the density on it, coloured by category."""
    cells = model.dequantizer.cells
    if not isinstance(cells, VoronoiCells) or cells.dim != 2:
        raise ValueError(
            f"model: got {type(cells).__name__} in {cells.dim} dimensions; expected learned cells of the plane"
        )
    tessellation = cells.map.tessellation
    x = model.density.sample((samples,)).cpu()
    codes = model.dequantizer.cells.quantize(x)
    count = len(cells.counts)
    figure, panels = new_figure(count, panel=(4.4, 4.4))
    for j, axes in enumerate(panels):
        window = _window(torch.cat([tessellation.anchors[j, : cells.counts[j]].cpu(), x[:, j]]))
        draw_tessellation(axes, tessellation, window, j, marker=3)
        axes.scatter(x[:, j, 0], x[:, j, 1], c=codes[:, j], s=3, cmap="viridis", alpha=0.6, linewidths=0, zorder=2)
        bare(axes, f"variable {j + 1}")
    figure.suptitle("learned cells, with samples of the density coloured by category", fontsize=11)
    return save(figure, path)


def _window(points: Tensor) -> Window:
    """A square around nearly all points."""
    low, high = points.quantile(0.003, dim=0), points.quantile(0.997, dim=0)
    half = 0.55 * float((high - low).max())
    x, y = ((low + high) / 2).tolist()
    return x - half, x + half, y - half, y + half
