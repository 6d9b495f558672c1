"""Vectors of real numbers under a density, ready to be trained; mixtures, coupling and spline flows from a config."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tessella.bijections import ActNorm, Bijection, Chain, ContextAffine, Coupling, partitions
from tessella.bijections.squashing import SQUASHINGS
from tessella.densities import Density, DimensionwiseMixture, DisjointMixture, Flow, Gaussian, StudentT, ZukoDensity
from tessella.geometry import Laguerre, Tessellation, Voronoi
from tessella.nets import MLP
from tessella.nets.mlp import zero

BOUND = 10.0  # standard deviations at which couplings inside a cell stop to tell displacements apart
TESSELLATIONS: dict[str, type[Tessellation]] = {"voronoi": Voronoi, "laguerre": Laguerre}


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
        return self.net(x / (1 + x.abs() / BOUND), context)


class DensityModel(nn.Module):
    """Maximum likelihood: loss = -mean log p(x). Any density of points, as the training loop wants it."""

    def __init__(self, density: Density):
        super().__init__()
        self.density = density

    def loss(self, batch: Tensor) -> Tensor:
        """Mean negative log-likelihood of a batch."""
        return self.nll(batch).mean()

    def nll(self, batch: Tensor) -> Tensor:
        """-log p(x) of each row, exactly."""
        return -self.density.log_prob(batch)

    @torch.no_grad()
    def initialize(self, batch: Tensor) -> None:
        """Data-dependent initialisation of the density."""
        self.density.initialize(batch)


@dataclass(frozen=True)
class DensityConfig:
    """Everything that is chosen about a density of R^D: coupling blocks, then cells, then coupling blocks inside."""

    cells: int = 16
    """Components of the disjoint mixture; 0 for a coupling flow without one, of all the blocks."""
    geometry: Literal["voronoi", "laguerre", "intervals"] = "voronoi"
    """Kind of the cells, unbounded; intervals: so many of each dimension for itself, and a gate for their grid."""
    blocks: int = 4
    """Coupling blocks before the tessellation: they bend the borders of the cells."""
    component_blocks: int = 4
    """Coupling blocks of the component, which are told the cell."""
    width: int = 64
    """Width of their networks."""
    layers: int = 2
    """Hidden layers of each network."""
    embedding: int = 16
    """Size of the embedding of a cell."""
    squashing: Literal["softsign", "root", "arctan"] = "root"
    """Radial profile of the map into a cell; Student's t follows it."""
    base: Literal["gaussian", "student"] = "student"
    """Base of the component: a Gaussian vanishes at the walls of a cell, Student's t of the right degrees does not."""


@dataclass(frozen=True)
class SplineConfig:
    """A neural spline flow of zuko, autoregressive: what one would use without cells."""

    transforms: int = 5
    """Autoregressive transforms, the order of the columns reversed after each."""
    width: int = 128
    """Width of their networks."""
    layers: int = 2
    """Hidden layers of each network."""
    bins: int = 8
    """Pieces of each monotonic spline on [-5, 5]; outside it is the identity."""


VectorConfig = DensityConfig | SplineConfig


def build_density(config: VectorConfig, dim: int) -> Flow:
    """The density on R^dim."""
    if isinstance(config, SplineConfig):
        return _spline_flow(config, dim)
    if config.cells == 0:
        return Flow(Gaussian((dim,)), Chain(*_couplings(dim, config.blocks + config.component_blocks, config)))
    return Flow(disjoint_mixture(config, dim), Chain(*_couplings(dim, config.blocks, config)))


def _spline_flow(config: SplineConfig, dim: int) -> Flow:
    try:
        from zuko.flows import NSF
    except ImportError as error:
        raise ImportError('spline: needs the library zuko; try pip install "tessella[zuko]"') from error
    hidden = [config.width] * config.layers
    spline = NSF(dim, transforms=config.transforms, hidden_features=hidden, bins=config.bins)
    return Flow(ZukoDensity(spline, (dim,)), Chain(ActNorm((dim,))))


def disjoint_mixture(config: DensityConfig, dim: int) -> DisjointMixture | DimensionwiseMixture:
    """The cells and what is inside them, without the blocks before."""
    if config.geometry == "intervals":
        gate = Bounded(MLP(dim, dim * config.cells, config.width, config.layers))
        intervals = Voronoi.create([config.cells] * dim, 1)
        return DimensionwiseMixture(intervals, component_flow(config, dim, 0), gate, config.squashing)
    tessellation = TESSELLATIONS[config.geometry].create(config.cells, dim)
    component = component_flow(config, dim, config.embedding)
    return DisjointMixture(tessellation, component, config.embedding, squashing=config.squashing)


def component_flow(config: DensityConfig, dim: int, context: int) -> Flow:
    """The density inside a cell, given a context of this size; of size 0, the same everywhere."""
    first = ContextAffine(zero(nn.Linear(context, 2 * dim))) if context else ActNorm((dim,))
    nets = _nets(dim, config.component_blocks, config, context)
    inside = [part for keep, net in nets for part in (ActNorm((dim,)), Coupling(dim, keep, Bounded(net)))]
    degrees = SQUASHINGS[config.squashing].degrees
    assert degrees is not None  # only the exponential has none, and the config does not offer it
    base = StudentT((dim,), degrees) if config.base == "student" else Gaussian((dim,))
    return Flow(base, Chain(first, *inside))


def _couplings(dim: int, blocks: int, config: DensityConfig) -> list[Bijection]:
    """ActNorm and affine coupling, `blocks` times; an ActNorm at least."""
    nets = _nets(dim, blocks, config)
    parts: list[Bijection] = [part for keep, net in nets for part in (ActNorm((dim,)), Coupling(dim, keep, net))]
    return parts or [ActNorm((dim,))]


def _nets(dim: int, blocks: int, config: DensityConfig, context: int = 0) -> list[tuple[list[int], nn.Module]]:
    """What each coupling keeps, every partition in turn, and its network; on a line there is nothing to couple."""
    if dim == 1:
        return []
    keeps = [list(keep) for keep in dict.fromkeys(map(tuple, partitions(dim)))]
    in_turn = [keeps[block % len(keeps)] for block in range(blocks)]
    return [(k, MLP(len(k), 2 * (dim - len(k)), config.width, config.layers, context)) for k in in_turn]
