"""The learned cells of some columns, as a picture needs them."""

from typing import TYPE_CHECKING, TypedDict

import torch
from torch import Tensor

from tessella.dequantizers import VoronoiCells
from tessella.estimators.frames import text
from tessella.estimators.overview.fidelity import Association
from tessella.geometry import polygons
from tessella.models import SemiDiscrete
from tessella.training.randomness import derived_seed, fork_rng, seed_noise

if TYPE_CHECKING:
    from tessella.estimators.tabular_flow import TabularFlow

MOST = 4
FEWEST_CATEGORIES, MOST_CATEGORIES = 3, 12
POINTS = 400  # draws of the density
MARGIN = 0.35  # around the anchors, of their extent


class CellMap(TypedDict):
    """Anchors of a column's categories in the plane, and their cells where the plane is all there is."""

    name: str
    categories: list[str]
    shares: list[float]
    """Of the training rows, for each category."""
    dim: int
    """Of the cells; from 3 on, the anchors are projected on the two directions of most variance."""
    window: list[float]
    """Left, right, bottom, top."""
    anchors: list[list[float]]
    cells: list[list[list[float]]]
    """Corners of each cell; none where it is projected."""
    points: list[list[float]]
    """Draws of the density, whose cells are the sampled categories; none where it is projected."""


def cell_maps(flow: "TabularFlow", association: Association) -> list[CellMap]:
    """Of the columns with a few categories, those which have most to do with the others; none without cells.

    Args:
        flow: fitted.
        association: of its columns.
    """
    if not isinstance(flow.model_, SemiDiscrete):
        return []
    with fork_rng(flow.model_.device), torch.no_grad():
        seed_noise(derived_seed(flow.seed_, "cells"), flow.model_.device)
        points = flow.model_.density.sample((POINTS,)).cpu()  # (B, G + R, D)
    strength = dict(zip(association["names"], map(sum, association["real"]), strict=True))
    sizes = {column.name: len(column.categories) for column in flow.columns_ if not column.number}
    few = [name for name in strength if FEWEST_CATEGORIES <= sizes.get(name, 0) <= MOST_CATEGORIES]
    return [_cell_map(flow, name, points) for name in sorted(few, key=lambda name: -strength[name])[:MOST]]


def _cell_map(flow: "TabularFlow", name: str, points: Tensor) -> CellMap:
    index = flow.encoding_.index(name)
    spec, token = flow.columns_[index], flow.encoding_.tokens(index)[0]
    positions = torch.from_numpy(flow.embedding(name).positions).double()
    dim = positions.shape[1]
    planar = positions if dim == 2 else _projected(positions)
    window = _window(planar)
    return CellMap(
        name=name,
        categories=[text(category) for category in spec.categories],
        shares=[frequency / sum(spec.frequencies) for frequency in spec.frequencies],
        dim=dim,
        window=list(window),
        anchors=planar.tolist(),
        cells=_cells(flow, window, token) if dim == 2 else [],
        points=points[:, token].double().tolist() if dim == 2 else [],
    )


def _projected(positions: Tensor) -> Tensor:
    """The two coordinates along which the anchors vary most, (K, 2)."""
    centred = positions - positions.mean(0)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    planar: Tensor = centred @ directions[:2].mT
    return planar


def _window(anchors: Tensor) -> tuple[float, float, float, float]:
    """A square with all anchors well inside."""
    low, high = anchors.amin(0), anchors.amax(0)
    half = float((high - low).max().clamp_min(1e-6)) * (0.5 + MARGIN)
    x, y = ((low + high) / 2).tolist()
    return x - half, x + half, y - half, y + half


def _cells(flow: "TabularFlow", window: tuple[float, float, float, float], token: int) -> list[list[list[float]]]:
    assert isinstance(flow.model_, SemiDiscrete)
    cells = flow.model_.dequantizer.cells
    assert isinstance(cells, VoronoiCells)
    return [cell.tolist() for cell in polygons(cells.map.tessellation, window, token)]
