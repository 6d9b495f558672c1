"""Figure 6 of the paper: disjoint mixtures of 2-D data; what components do at the walls; what a mixture costs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tessella.data.toys import RADIUS
from tessella.densities import BASES, DisjointMixture, Flow
from tessella.geometry import Tessellation, Voronoi
from tessella.paper.figures.cells import Window, draw_tessellation, grid
from tessella.paper.figures.style import (
    BLUE,
    DENSITY,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    TEAL,
    bare,
    new_figure,
    save,
)
from tessella.paper.toys import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SQUARE = (-RADIUS, RADIUS, -RADIUS, RADIUS)
PIXELS = 400
COMPONENTS = (BLUE, ORANGE, GREEN, RED, TEAL, PURPLE)
FAINTEST = 0.1  # tint of a cell where the density is 0


@torch.no_grad()
def draw_comparison(path: Path, compared: Comparison, rows: Tensor, seed: int = 0) -> Path:
    """Data, coupling flow, cuts by dimension; below them samples, density and cells of the disjoint mixture."""
    points = grid(SQUARE, PIXELS)
    models = {"coupling flow": compared.coupling, "cut by dimension": compared.dimensionwise}
    models["disjoint mixture"] = compared.mixture
    best = {name: chosen.best for name, chosen in models.items()}
    densities = {name: fitted.density.cpu().log_prob(points).exp() for name, fitted in best.items()}
    mixture, shown = best["disjoint mixture"].density, densities["disjoint mixture"]
    brightest = float(shown.quantile(0.995))
    torch.manual_seed(seed)
    figure, panels = new_figure(3, 2, panel=(3.8, 4.1))
    _draw_points(panels[0], rows, "data")
    _draw_points(panels[3], mixture.sample((len(rows),)), "samples of the disjoint mixture")
    for axes, (name, density) in zip((panels[1], panels[2], panels[4]), densities.items(), strict=True):
        _draw_density(axes, density, brightest, f"{name}, NLL {best[name].nll:.3f}")
    _draw_cells(panels[5], mixture, points, shown / brightest, _colours(mixture, points), "its cells")
    return save(figure, path)


@torch.no_grad()
def draw_moments(path: Path, moments: dict[int, Flow]) -> Path:
    """Cells and density of a disjoint mixture after so many steps."""
    points = grid(SQUARE, PIXELS)
    densities = {step: density.log_prob(points).exp() for step, density in moments.items()}
    brightest = float(densities[max(densities)].quantile(0.995))
    colours = _colours(moments[max(moments)], points)  # a cell keeps its own
    figure, panels = new_figure(3, (len(moments) + 2) // 3, panel=(3.8, 4.1))
    for axes, (step, density) in zip(panels, moments.items(), strict=True):
        title = "start" if step == 0 else f"{step:,} steps"
        _draw_cells(axes, density, points, densities[step] / brightest, colours, title)
    return save(figure, path)


@torch.no_grad()
def draw_walls(path: Path) -> Path:
    """The same cells with Gaussian and with Student-t components: the first vanish at the walls."""
    anchors = torch.tensor([[-1.6, 0.7], [-0.3, 1.7], [0.2, -0.2], [1.5, 0.9], [-1.2, -1.3], [1.2, -1.4], [0.1, -2.6]])
    window = (-3.0, 3.0, -3.4, 2.6)
    line = torch.linspace(-3, 3, 1501)[:, None] * torch.tensor([1.0, 0.0])
    figure, panels = new_figure(3, panel=(3.6, 3.6))
    colours = {"gaussian": BLUE, "student": ORANGE}
    names = {"gaussian": "Gaussian components", "student": "Student-t components"}
    for axes, base in zip(panels, names, strict=False):
        mixture = DisjointMixture(Voronoi(anchors), BASES[base]((2,)), embedding=0, scale=1.0)
        density = mixture.log_prob(grid(window, PIXELS)).exp()
        _draw_density(axes, density, float(density.max()), names[base], window)
        draw_tessellation(axes, mixture.tessellation, window)
        bare(axes, names[base])
        panels[2].plot(line[:, 0], mixture.log_prob(line).exp(), color=colours[base], lw=1.4, label=names[base])
    crossed = mixture.tessellation.nearest(line).diff() != 0
    for wall in line[:-1][crossed, 0].tolist():
        panels[2].axvline(wall, color=GREY, lw=0.8, zorder=0)
    panels[2].set(xlabel="$x_1$, at $x_2 = 0$", ylabel="density", ylim=(0, 0.19))
    panels[2].legend(frameon=False, fontsize=9, loc="upper left")
    panels[2].set_title("along a line", fontsize=11, color=INK)
    return save(figure, path)


def draw_cost(path: Path, shapes: list[dict[str, Any]]) -> Path:
    """Time of a training step against the number of components, as multiples of one component."""
    figure, panels = new_figure(len(shapes), panel=(4.4, 3.4), gap=0.05)
    for axes, shape in zip(panels, shapes, strict=True):
        for which, colour in (("ordinary", ORANGE), ("disjoint", BLUE)):
            steps = shape[which]["training_step"]["ratios"]
            axes.plot([int(k) for k in steps], list(steps.values()), "o-", color=colour, ms=4, label=f"{which} mixture")
        axes.axhline(1, color=GREY, lw=0.8)
        axes.set(xscale="log", yscale="log", xlabel="components", ylabel="training step, 1 component = 1")
        axes.set_title(f"D = {shape['dim']}", fontsize=11, color=INK)
        axes.legend(frameon=False)
    return save(figure, path)


def _draw_points(axes: "Axes", points: Tensor, title: str) -> None:
    axes.scatter(points[:, 0], points[:, 1], s=1, color=BLUE, alpha=0.25, linewidths=0)
    axes.set(xlim=SQUARE[:2], ylim=SQUARE[2:])
    bare(axes, title)


def _draw_density(axes: "Axes", density: Tensor, brightest: float, title: str, window: Window = SQUARE) -> None:
    axes.imshow(density.numpy().T, origin="lower", extent=window, cmap=DENSITY, vmin=0, vmax=brightest)
    bare(axes, title)


def _draw_cells(axes: "Axes", density: Flow, points: Tensor, brightness: Tensor, colours: Tensor, title: str) -> None:
    """Every cell in its colour, as dark as the density there; borders and anchors.

    All are seen through the layers before the tessellation, which bend them.
    """
    shade = FAINTEST + (1 - FAINTEST) * brightness.clamp(0, 1)[..., None]
    image = 1 - shade * (1 - colours[_cells(density, points)])
    axes.imshow(image.numpy().swapaxes(0, 1), origin="lower", extent=SQUARE)
    x, y = points[:, 0, 0].numpy(), points[0, :, 1].numpy()
    tessellation = _tessellation(density)
    for ahead in _leads(tessellation, density.bijection.forward_and_ladj(points)[0]).unbind(-1):
        axes.contour(x, y, ahead.numpy().T, levels=[0.0], colors=[INK], linewidths=0.5, alpha=0.7)
    anchors = density.bijection.inverse_and_ladj(tessellation.anchors)[0]
    axes.scatter(anchors[:, 0], anchors[:, 1], s=6, color=INK, zorder=3, linewidths=0)
    axes.set(xlim=SQUARE[:2], ylim=SQUARE[2:])
    bare(axes, title)


def _tessellation(density: Flow) -> Tessellation:
    assert isinstance(density.base, DisjointMixture)
    return density.base.tessellation


def _cells(density: Flow, points: Tensor) -> Tensor:
    """The cell that holds each point of the plane."""
    return _tessellation(density).nearest(density.bijection.forward_and_ladj(points)[0])


def _colours(density: Flow, points: Tensor) -> Tensor:
    """A colour for each cell, (K, 3): another than those of its neighbours, seen on this grid of points."""
    from matplotlib.colors import to_rgb

    cell = _cells(density, points)
    neighbours = [set[int]() for _ in range(_tessellation(density).counts[0])]
    for one, other in ((cell[1:], cell[:-1]), (cell[:, 1:], cell[:, :-1])):
        for i, j in torch.stack([one, other], -1)[one != other].unique(dim=0).tolist():
            neighbours[i].add(j)
            neighbours[j].add(i)
    chosen: list[int] = []
    for i, around in enumerate(neighbours):
        taken = [chosen[j] for j in around if j < i]
        turned = [(i + colour) % len(COMPONENTS) for colour in range(len(COMPONENTS))]
        chosen.append(min(turned, key=taken.count))
    return torch.tensor([to_rgb(COMPONENTS[colour]) for colour in chosen])


def _leads(tessellation: Tessellation, x: Tensor) -> Tensor:
    """How much nearer each anchor is than the best other one, > 0 in its own cell: (*batch, 2) -> (*batch, K)."""
    power = (x[..., None, :] - tessellation.anchors).square().sum(-1) - tessellation.weights
    nearest, second = power.sort(-1).values[..., :2].unbind(-1)
    others = torch.where(power == nearest[..., None], second[..., None], nearest[..., None])
    return others - power
