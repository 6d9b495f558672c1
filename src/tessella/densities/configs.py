"""Densities from their typed descriptions."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Literal

from torch import Tensor, nn

from tessella.bijections import (
    AFFINE,
    ActNorm,
    Bijection,
    Chain,
    ContextAffine,
    Elementwise,
    Flattened,
    RationalQuadratic,
)
from tessella.bijections.squashing import Profile, profile_of
from tessella.configs import Choice
from tessella.contracts import Regions
from tessella.densities.base import Density
from tessella.densities.couplings import (
    BlockParts,
    CellFlow,
    flat_couplings,
    flat_flow,
    group_couplings,
    group_flow,
    token_flow,
)
from tessella.densities.dimensionwise import DimensionwiseMixture
from tessella.densities.disjoint import DisjointMixture
from tessella.densities.flow import Flow
from tessella.densities.gaussian_mixture import GaussianMixture
from tessella.densities.standard import BASES, base_in_cells
from tessella.densities.zuko import spline_density
from tessella.geometry import Laguerre, Voronoi
from tessella.nets import MLP, ResidualMLP
from tessella.nets.linear import Linear
from tessella.nets.mlp import zero

BOUND = 10.0  # standard deviations at which couplings inside a cell stop to tell displacements apart
TRANSFORMS: dict[str, Callable[[int], Elementwise]] = {"affine": lambda bins: AFFINE, "spline": RationalQuadratic}
NETWORKS: dict[str, type[nn.Module]] = {"mlp": MLP, "residual": ResidualMLP}


class DensityConfig(Choice, ABC):
    """What is chosen about a density of points."""

    least_dim = 1
    """Of the points' last dimension."""
    tokens = False
    """Whether its networks take the variables of a row as tokens, rather than one vector; noise does likewise."""

    @abstractmethod
    def build(self, event: tuple[int, ...], fast: bool = False, regions: Regions | None = None) -> Density:
        """The density of points of this shape.

        Args:
            event: shape of the points.
            fast: see `Transformer`.
            regions: of the variables that are categories, which come first; for densities that know them.
        """


@dataclass(frozen=True)
class CouplingConfig(DensityConfig, kind="coupling"):
    """A flow over the variables of a row (N, D), whose couplings look across them by attention."""

    least_dim = 2
    tokens = True
    blocks: int = 8
    """Coupling blocks."""
    width: int = 64
    """Width of the networks."""
    layers: int = 2
    """Attention layers of each network."""
    logistics: int = 0
    """Coordinates move by the distribution function of a mixture of so many logistics; 0: affinely."""
    across: bool = False
    """Blocks move half of every variable's coordinates; with this, in turn, also half of the variables."""
    linear: bool = False
    """A linear map of each variable's coordinates between every two blocks."""
    base: Literal["gaussian", "student"] = "gaussian"
    """Base density."""

    def build(self, event: tuple[int, ...], fast: bool = False, regions: Regions | None = None) -> Density:
        return token_flow(
            BASES[self.base](event),
            self.blocks,
            self.width,
            self.layers,
            fast=fast,
            across=self.across,
            logistics=self.logistics,
            linear=self.linear,
        )


@dataclass(frozen=True)
class GroupCouplingConfig(DensityConfig, kind="groups"):
    """A flow over the variables of a row (N, D): groups of them move in turn, each given all others, by attention."""

    tokens = True
    sweeps: int = 2
    """How often every variable moves."""
    groups: int = 4
    """Of variables, in a sweep; couplings are twice as many, each of half of the coordinates."""
    width: int = 64
    """Width of the networks."""
    layers: int = 2
    """Attention layers of each network."""
    logistics: int = 4
    """Coordinates move by the distribution function of a mixture of so many logistics; 0: affinely."""
    base: Literal["gaussian", "student"] = "gaussian"
    """Base density."""

    def build(self, event: tuple[int, ...], fast: bool = False, regions: Regions | None = None) -> Density:
        groups = min(self.groups, event[0])
        sizes = self.sweeps, groups, self.width, self.layers
        return group_flow(BASES[self.base](event), *sizes, fast, self.logistics)


@dataclass(frozen=True)
class CellCouplingConfig(DensityConfig, kind="cells"):
    """A flow over the variables of a row (N, D) that knows their cells.

    First groups of variables move in turn, by mixtures with a bump in every cell, given the cells of the groups
    after them; then as `GroupCouplingConfig` has it, numbers among them, which lie in no cells.
    """

    tokens = True
    groups: int = 4
    """Of variables, in a sweep."""
    components: int = 16
    """Of each group's mixture; in each of them its variables are independent, given all others."""
    dropout: float = 0.0
    """Share of what each block of a network that knows cells adds that is left out in training; for small tables."""
    further: int = 0
    """Further sweeps over groups, other ones each time, by couplings that know no cells; one at least for numbers."""
    width: int = 64
    """Width of the networks, and size of the embedding of a cell."""
    layers: int = 2
    """Attention layers of each network."""
    logistics: int = 4
    """In further sweeps, coordinates move by the distribution function of a mixture of so many logistics."""

    def build(self, event: tuple[int, ...], fast: bool = False, regions: Regions | None = None) -> Density:
        variables, dim = event
        if regions is None:
            raise ValueError("regions: got None; expected those of the categories, as a density that knows cells needs")
        groups, categories = min(self.groups, variables), len(regions.counts)
        sweeps = range(1, 1 + max(self.further, int(categories < variables)))
        rest = group_couplings(variables, dim, sweeps, groups, self.width, self.layers, fast, self.logistics)
        groups = min(groups, categories)
        return CellFlow(
            BASES["logistic"](event),
            regions,
            groups,
            self.width,
            self.layers,
            fast,
            self.components,
            self.dropout,
            rest,
        )


@dataclass(frozen=True, kw_only=True)
class BlockOptions:
    """What coupling blocks of vectors are made of; by default those of the paper, affine couplings by MLPs."""

    transform: Literal["affine", "spline"] = "affine"
    """How coordinates move: affinely, or by monotonic rational-quadratic splines on [-5, 5]."""
    bins: int = 8
    """Pieces of each spline."""
    network: Literal["mlp", "residual"] = "mlp"
    """Of the coefficients; the hidden layers of `residual` are blocks of two, each with a shortcut."""
    linear: bool = False
    """A linear map of all coordinates between every two blocks."""
    dropout: float = 0.0
    """Share of what each block of a `residual` network adds that is left out in training."""

    @property
    def parts(self) -> BlockParts:
        """What they describe."""
        for name, known in (("transform", TRANSFORMS), ("network", NETWORKS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}: got {getattr(self, name)!r}; expected one of {', '.join(known)}")
        if self.dropout and self.network != "residual":
            raise ValueError(f"dropout: got {self.dropout} with {self.network!r} networks; expected 0, or 'residual'")
        network: Callable[..., nn.Module] = NETWORKS[self.network]
        if self.dropout:
            network = partial(network, dropout=self.dropout)
        return BlockParts(TRANSFORMS[self.transform](self.bins), network, self.linear)


@dataclass(frozen=True)
class FlatCouplingConfig(BlockOptions, DensityConfig, kind="flat"):
    """A flow over a flat vector: couplings of half of it given the other; by default the paper's."""

    blocks: int = 8
    """Coupling blocks."""
    width: int = 64
    """Width of the networks."""
    layers: int = 2
    """Hidden layers of each network."""
    base: Literal["gaussian", "student"] = "gaussian"
    """Base density."""

    def build(self, event: tuple[int, ...], fast: bool = False, regions: Regions | None = None) -> Density:
        return flat_flow(BASES[self.base](event), self.blocks, self.width, self.layers, self.parts)


@dataclass(frozen=True)
class SplineConfig(DensityConfig, kind="spline"):
    """A neural spline flow of zuko, autoregressive: what one would use without cells."""

    transforms: int = 5
    """Autoregressive transforms, the order of the columns reversed after each."""
    width: int = 128
    """Width of their networks."""
    layers: int = 2
    """Hidden layers of each network."""
    bins: int = 8
    """Pieces of each monotonic spline on [-5, 5]; outside it is the identity."""

    def build(self, event: tuple[int, ...], fast: bool = False, regions: Regions | None = None) -> Density:
        spline = spline_density(event, self.transforms, [self.width] * self.layers, self.bins)
        norm: Bijection = ActNorm((prod(event),))
        return Flow(spline, norm if len(event) == 1 else Flattened(norm))


@dataclass(frozen=True)
class GaussianMixtureConfig(DensityConfig, kind="gaussian-mixture"):
    """A mixture of Gaussians with full covariances, which expectation maximisation fits better than gradients do."""

    components: int = 16
    """Of the mixture."""

    def build(self, event: tuple[int, ...], fast: bool = False, regions: Regions | None = None) -> Density:
        return GaussianMixture(self.components, *event)


@dataclass(frozen=True)
class DisjointConfig(BlockOptions, DensityConfig, ABC):
    """Shared by mixtures whose components live in cells: coupling blocks, then cells, then coupling blocks inside."""

    cells: int = 16
    """Components of the mixture."""
    blocks: int = 4
    """Coupling blocks before the cells: they bend their borders."""
    component_blocks: int = 4
    """Coupling blocks of the component."""
    width: int = 64
    """Width of their networks."""
    layers: int = 2
    """Hidden layers of each network."""
    squashing: Profile = 32.0
    """Radial profile of the map into a cell, by name or by its power p; Student's t follows it."""
    base: Literal["gaussian", "student"] = "student"
    """Base of the component: a Gaussian vanishes at the walls of a cell, Student's t of the right degrees does not."""
    steady: float = 1.0
    """Walls learn slowly: see `CellBijection`; 0 leaves gradients as they are."""

    @abstractmethod
    def mixture(self, dim: int) -> Density:
        """The cells and what is inside them, without the blocks before."""

    def build(self, event: tuple[int, ...], fast: bool = False, regions: Regions | None = None) -> Flow:
        (dim,) = event
        blocks = flat_couplings(dim, self.blocks, self.width, self.layers, parts=self.parts) or [ActNorm((dim,))]
        return Flow(self.mixture(dim), Chain(*blocks))

    def component(self, dim: int, context: int) -> Flow:
        """The density inside a cell, given a context of this size; of size 0, the same everywhere."""
        first = ContextAffine(zero(Linear(context, 2 * dim))) if context else ActNorm((dim,))
        network = self.parts.network
        parts = replace(self.parts, network=lambda *sizes: Bounded(network(*sizes)))
        inside = flat_couplings(dim, self.component_blocks, self.width, self.layers, context, parts=parts)
        degrees = profile_of(self.squashing).degrees
        if degrees is None and self.base == "student":
            raise ValueError(
                f"base: got 'student' with {self.squashing!r} cells, whose tail no power has; take gaussian"
            )
        return Flow(base_in_cells(self.base, (dim,), degrees or 1), Chain(first, *inside))


@dataclass(frozen=True)
class DisjointMixtureConfig(DisjointConfig, kind="disjoint-mixture"):
    """A disjoint mixture in the cells of a tessellation; couplings inside are told the cell."""

    embedding: int = 16
    """Size of the embedding of a cell."""
    weighted: bool = False
    """Laguerre cells, which grow and shrink without moving, instead of Voronoi cells."""
    affine: bool = False
    """A full-covariance affine map for each cell, before the component."""

    def mixture(self, dim: int) -> DisjointMixture:
        tessellation = (Laguerre if self.weighted else Voronoi).create(self.cells, dim)
        component = self.component(dim, self.embedding)
        return DisjointMixture(
            tessellation, component, self.embedding, squashing=self.squashing, affine=self.affine, steady=self.steady
        )


@dataclass(frozen=True)
class DimensionwiseMixtureConfig(DisjointConfig, kind="dimensionwise-mixture"):
    """A disjoint mixture that cuts each dimension for itself into so many intervals, with a gate for their grid."""

    def mixture(self, dim: int) -> DimensionwiseMixture:
        gate = Bounded(MLP(dim, dim * self.cells, self.width, self.layers))
        intervals = Voronoi.create([self.cells] * dim, 1)
        return DimensionwiseMixture(intervals, self.component(dim, 0), gate, self.squashing, steady=self.steady)


class Bounded(nn.Module):
    """net(x / (1 + |x| / b), context), elementwise: what a coupling inside a cell reads of its point.

    Displacements grow without bound towards the walls. Read as they are, a point close to a wall would have gradients
    so large that nothing else was learned; read so, its influence stays that of a point.
    """

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """(*batch, inputs), (*batch, context) -> (*batch, outputs)."""
        coefficients: Tensor = self.net(x / (1 + x.abs() / BOUND), context)
        return coefficients
