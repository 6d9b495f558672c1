"""Where the points of a dequantizer gather: a component for each category, a row of them for each number."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tessella.dequantizers.cells import VoronoiCells

MOST = 256  # components of a token; if it has more categories, the rarer ones share some
SHARED = 64
KNOTS, REACH = 12, 2.6  # components of a number, evenly between -reach and reach in units of its map's image
ROUNDS = 10


@dataclass(frozen=True)
class Components:
    """Token j has counts[j] components, normal around `centre` with spread `scale`, (sum counts, D), token by token."""

    counts: tuple[int, ...]
    centre: Tensor
    scale: Tensor
    category_component: tuple[Tensor, ...]
    """For each categorical token the component of every category."""

    def of_rows(self, codes: Tensor, images: Tensor) -> Tensor:
        """The component of each token, (B, G + R), for codes (B, G) and images of numbers (B, R)."""
        categories = [own[codes[:, j]] for j, own in enumerate(self.category_component)]
        knot = (images + REACH) * ((KNOTS - 1) / (2 * REACH))
        numbers = knot.round().clamp(0, KNOTS - 1).long()
        return torch.cat([torch.stack(categories, 1), numbers.to(codes.device)], 1)


@torch.no_grad()
def components_in_cells(cells: VoronoiCells, codes: Tensor, numbers: int) -> Components:
    """The components of cells filled with narrow noise, and of so many numbers whose images look normal.

    Args:
        cells: one component for each; or for each of the 192 most frequent, and 64 for groups among the others.
        codes: rows that say how frequent the categories are, (B, G).
        numbers: R.
    """
    anchors, spread = cells.map.tessellation.anchors.detach(), cells.map.log_scale.exp()
    centres, scales, owners = [], [], []
    for j, count in enumerate(cells.counts):
        here, near = anchors[j, :count], spread[j, :count, None].expand(count, cells.dim)
        frequency = torch.bincount(codes[:, j], minlength=count)
        own = torch.arange(count) if count <= MOST else shared_components(here, frequency)
        owners.append(own)
        centre, around = _grouped(here, near, own, min(count, MOST))
        centres.append(centre)
        scales.append(around)
    for _ in range(numbers):
        knots = anchors.new_zeros(KNOTS, cells.dim)
        knots[:, 0] = torch.linspace(-REACH, REACH, KNOTS)
        width = torch.ones_like(knots)
        width[:, 0] = 1.4 * REACH / (KNOTS - 1)
        centres.append(knots)
        scales.append(width)
    return Components(component_counts(cells.counts, numbers), torch.cat(centres), torch.cat(scales), tuple(owners))


def component_counts(counts: tuple[int, ...], numbers: int) -> tuple[int, ...]:
    """How many components the tokens have: of so many categories each, then of so many numbers."""
    return (*(min(count, MOST) for count in counts), *[KNOTS] * numbers)


def shared_components(points: Tensor, frequency: Tensor) -> Tensor:
    """The component of each category at points (K, D): its own if it is frequent, else that of its group."""
    order = frequency.argsort(descending=True)
    frequent, rare = order[: MOST - SHARED], order[MOST - SHARED :]
    component = torch.empty_like(frequency)
    component[frequent] = torch.arange(len(frequent))
    component[rare] = len(frequent) + _clusters(points[rare])
    return component


def _clusters(points: Tensor) -> Tensor:
    """Which of 64 groups of neighbours each point (K, D) is in: k-means."""
    centre = points[torch.randperm(len(points))[:SHARED]]
    for _ in range(ROUNDS):
        nearest = torch.cdist(points, centre).argmin(1)
        held = torch.bincount(nearest, minlength=SHARED)[:, None]
        middle = torch.zeros_like(centre).index_add(0, nearest, points) / held.clamp_min(1)
        centre = torch.where(held > 0, middle, centre)
    return torch.cdist(points, centre).argmin(1)


def _grouped(points: Tensor, spread: Tensor, group: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Middle of each group, and the spread of what lies around its points, (groups, D); 0 and 1 if it is empty."""
    size = torch.bincount(group, minlength=groups)[:, None]
    middle = points.new_zeros(groups, points.shape[1]).index_add(0, group, points) / size.clamp_min(1)
    square = (points - middle[group]).square() + spread.square()
    total = torch.zeros_like(middle).index_add(0, group, square)
    return middle, torch.where(size > 0, total / size.clamp_min(1), 1).sqrt()
