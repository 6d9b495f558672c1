"""Pictures of tessellations and of the map into a cell."""

from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, MixtureSameFamily, Normal, TransformedDistribution

from tessella.bijections import CellBijection
from tessella.geometry import Tessellation, polygons
from tessella.paper.figures.style import BLUE, DENSITY, GREY, INK, ORANGE, bare, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Window = tuple[float, float, float, float]


def draw_tessellation(
    axes: "Axes", tessellation: Tessellation, window: Window, variable: int = 0, marker: float = 9
) -> None:
    """Cell borders and anchors (of size `marker`) of one variable's planar tessellation."""
    from matplotlib.collections import PolyCollection

    corners = [polygon.numpy() for polygon in polygons(tessellation, window, variable) if len(polygon)]
    axes.add_collection(PolyCollection(corners, facecolors="none", edgecolors=GREY, linewidths=0.8))
    anchors = tessellation.anchors.detach()
    anchors = anchors if tessellation.shared else anchors[variable, : tessellation.counts[variable]]
    axes.scatter(anchors[:, 0], anchors[:, 1], s=marker, color=INK, zorder=3)
    axes.set(xlim=window[:2], ylim=window[2:])


def draw_map_into_cell(path: Path, bijection: CellBijection, cell: int, window: Window) -> Path:
    """Figure 1 of the paper: a density on the plane, and the same density pushed into one cell."""
    figure, (left, right) = new_figure(2, panel=(3.8, 3.8), gap=0.12)
    base = _three_bumps()
    anchor = bijection.tessellation.anchors[cell].detach()
    x = grid(window)
    with torch.no_grad():
        before = base.log_prob(x - anchor).exp()
    after = _in_cell(base, bijection, cell, x)
    for axes, density, title in ((left, before, r"$p(x)$"), (right, after, r"$p(f(x))$")):
        axes.imshow(density.numpy().T, origin="lower", extent=window, cmap=DENSITY, vmin=0, interpolation="bilinear")
        draw_tessellation(axes, bijection.tessellation, window)
        bare(axes, title)
        axes.plot(*anchor.numpy(), "o", ms=5, color=ORANGE, zorder=4)
    _draw_circles(left, right, bijection, cell, anchor)
    left.annotate("", (1.14, 0.5), (1.01, 0.5), xycoords="axes fraction", arrowprops={"arrowstyle": "->", "color": INK})
    left.annotate("$f$", (1.075, 0.53), xycoords="axes fraction", ha="center", fontsize=13, color=INK)
    return save(figure, path)


def draw_profiles(path: Path, tessellation: Tessellation, cell: int, window: Window, powers: Sequence[float]) -> Path:
    """The same density, and the same circles, in one cell under profiles of these powers."""
    figure, panels = new_figure(len(powers), panel=(3.0, 3.4))
    base, x, anchor = _three_bumps(), grid(window), tessellation.anchors[cell].detach()
    circle = _circle()
    for axes, p in zip(panels, powers, strict=True):
        bijection = CellBijection(tessellation, float(p))
        torch.nn.init.constant_(bijection.log_scale, log(0.6))
        density = _in_cell(base, bijection, cell, x)
        brightest = float(density[density.isfinite()].quantile(0.98))  # a thin line at the wall may be higher
        axes.imshow(density.numpy().T, origin="lower", extent=window, cmap=DENSITY, vmin=0, vmax=brightest)
        draw_tessellation(axes, tessellation, window)
        for radius in (0.5, 1.0, 1.5, 2.0):
            with torch.no_grad():
                image, _ = bijection.forward_and_ladj(radius * circle, torch.full((len(circle),), cell))
            axes.plot(*image.numpy().T, color=BLUE, lw=0.7, alpha=0.7)
        axes.plot(*anchor.numpy(), "o", ms=5, color=ORANGE, zorder=4)
        bare(axes, f"p = {p:g}")
    return save(figure, path)


@torch.no_grad()
def _in_cell(base: Distribution, bijection: CellBijection, cell: int, x: Tensor) -> Tensor:
    """The density of f(u), u ~ base, at points of the plane; NaN outside of the cell."""
    inside = (bijection.tessellation.nearest(x) == cell) & ~bijection.outside(x, torch.full(x.shape[:-1], cell))
    density = torch.full(x.shape[:-1], torch.nan)
    into = bijection.as_transform(torch.tensor(cell))
    density[inside] = TransformedDistribution(base, [into]).log_prob(x[inside]).exp()
    return density


def _circle() -> Tensor:
    angle = torch.linspace(0, 2 * torch.pi, 400)
    return torch.stack([angle.cos(), angle.sin()], -1)


def _draw_circles(left: "Axes", right: "Axes", bijection: CellBijection, cell: int, anchor: Tensor) -> None:
    """Circles around the anchor and their images: how the plane is folded into the cell."""
    circle = _circle()
    for radius in (0.5, 1.0, 2.0, 4.0):
        with torch.no_grad():
            image, _ = bijection.forward_and_ladj(radius * circle, torch.full((400,), cell))
        left.plot(*(anchor + radius * circle).numpy().T, color=BLUE, lw=0.7, alpha=0.7)
        right.plot(*image.numpy().T, color=BLUE, lw=0.7, alpha=0.7)


def _three_bumps() -> MixtureSameFamily:
    centres = torch.tensor([[0.9, 0.4], [-0.8, 0.7], [0.0, -1.0]])
    parts = Independent(Normal(centres, torch.full_like(centres, 0.45)), 1)
    return MixtureSameFamily(torch.distributions.Categorical(torch.ones(3)), parts)


def grid(window: Window, steps: int = 320) -> Tensor:
    """Midpoints of steps x steps pixels, (steps, steps, 2)."""
    left, right, bottom, top = window
    x = left + (right - left) * (torch.arange(steps) + 0.5) / steps
    y = bottom + (top - bottom) * (torch.arange(steps) + 0.5) / steps
    return torch.stack(torch.meshgrid(x, y, indexing="ij"), -1)
