"""Learned regions: the cells of a tessellation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from tessella.bijections import CellBijection, Profile, profile_of
from tessella.dequantizers.cells import Cells, CellsConfig
from tessella.dequantizers.profiles import profile_positions, spread_out, turned
from tessella.geometry import Box, Laguerre, Tessellation, Voronoi

NARROW = 0.1  # spread of narrow noise in a cell, as a share of the way to its nearest wall
Placement = Literal["apart", "profiles", "random"]


class VoronoiCells(Cells):
    """Learned cells of a tessellation, Voronoi or Laguerre, in any dimension."""

    kind: type[Tessellation] = Voronoi

    def __init__(
        self,
        counts: Sequence[int],
        dim: int,
        box: float = 0.0,
        squashing: Profile = "softsign",
        shared: bool = False,
        placement: Placement = "profiles",
        spread: float = 0.5,
        learn_power: bool = False,
    ):
        super().__init__()
        self.counts, self.dim, self.placement, self.spread = tuple(counts), dim, placement, spread
        self.degrees = profile_of(squashing).degrees or 1
        if shared and len(set(counts)) > 1:
            raise ValueError(
                f"shared: got variables of {sorted(set(counts))} categories; expected equally many in each"
            )
        cells = max(counts) if shared else counts
        tessellation = self.kind.create(cells, dim, box=Box.cube(box, dim) if box else None)
        self.map = CellBijection(tessellation, squashing, learn_power=learn_power)

    def arrange(self, codes: Tensor) -> None:
        if self.placement != "random":
            self.move_to(profile_positions(codes, self.counts, self.dim))

    def move_to(self, positions: Tensor) -> None:
        """Put the anchors at positions (N, K, D), or at their means where all variables share them; maybe apart."""
        tessellation = self.map.tessellation
        tessellation.move_anchors(positions.mean(0) if tessellation.shared else positions)
        if self.placement == "apart":
            self.spread_out()
            self.narrow(self.spread)

    @torch.no_grad()
    def spread_out(self) -> None:
        """Move the anchors apart, neighbours staying neighbours."""
        tessellation = self.map.tessellation
        positions = spread_out(tessellation.anchors.reshape(-1, max(self.counts), self.dim), tessellation.counts)
        positions = turned(positions)
        tessellation.move_anchors(positions.view_as(tessellation.anchors))

    @torch.no_grad()
    def narrow(self, share: float) -> None:
        """Scale the maps so that noise of spread 1 has this share of the way to the nearest wall as its spread."""
        to_wall = self.map.tessellation.spacing() / 2
        self.map.log_scale.copy_((share * torch.where(to_wall > 0, to_wall, 1)).log())

    def forward(self, u: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        return self.map.forward_and_ladj(u, codes)

    def inverse(self, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        return self.map.inverse_and_ladj(x, codes)

    def quantize(self, x: Tensor) -> Tensor:
        return self.map.tessellation.nearest(x)

    def centre(self, codes: Tensor) -> Tensor:
        return self.map.tessellation.anchor_of(codes)


class LaguerreCells(VoronoiCells):
    """Learned power cells: they grow and shrink without moving their anchors."""

    kind = Laguerre


@dataclass(frozen=True)
class VoronoiConfig(CellsConfig, kind="voronoi"):
    """Cells of a learned Voronoi tessellation."""

    dim: int = 4
    """Dimensions per variable."""
    placement: Placement = "apart"
    """Where they start: apart, categories that co-occur with the same others being neighbours, with noise that fills a
    part of each cell; where correspondence analysis places such categories (profiles); or at random."""
    spread: float = 0.5
    """apart: standard deviation of the noise, as a share of the way to the nearest wall."""
    shared: bool = False
    """One tessellation for all variables (they must have equally many categories) instead of one each."""
    box: float = 0.0
    """Half-width of a box around the cells (the paper's setting); 0 leaves outer cells unbounded."""
    squashing: Profile = 8.0
    """Radial profile of the map into a cell, by its power p or by name; softsign is the paper's."""
    learn_power: bool = False
    """Learn the power, one for each geometry."""

    geometry: ClassVar[type[VoronoiCells]] = VoronoiCells

    def build(self, counts: Sequence[int], least: int = 1) -> VoronoiCells:
        shape = (counts, self.dim, self.box, self.squashing, self.shared)
        return self.geometry(*shape, self.placement, self.spread, self.learn_power)


@dataclass(frozen=True)
class LaguerreConfig(VoronoiConfig, kind="laguerre"):
    """Cells of a learned power diagram."""

    geometry = LaguerreCells
