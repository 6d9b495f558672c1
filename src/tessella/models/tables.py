"""Models of the rows of a table: one description, one way to build it, one way to start it from the training rows."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

from torch import nn

from tessella.baselines import Baseline, CategoricalMixture
from tessella.baselines.choosing import fit_mixture
from tessella.bijections import Profile
from tessella.configs import Choice
from tessella.contracts import Batch
from tessella.data.tables.shape import TableShape
from tessella.densities import CellMixture, CouplingConfig, DensityConfig, Flow, token_flow
from tessella.dequantizers import (
    Cells,
    CellsConfig,
    ConditionalNoise,
    Dequantizer,
    NoiseConfig,
    Numbers,
    VoronoiCells,
    VoronoiConfig,
)
from tessella.dequantizers.components import component_counts, components_in_cells
from tessella.models.any_order import AutoregressiveTable
from tessella.models.backoff import BackoffTable
from tessella.models.semidiscrete import SemiDiscrete

TableModel = SemiDiscrete | Baseline | AutoregressiveTable | BackoffTable
"""What scores and draws the rows of a table: bounds through cells, or exact values."""


@dataclass(frozen=True)
class Started:
    """A model at its data-dependent start."""

    model: TableModel
    config: "TableConfig"
    """With everything decided that the rows were to decide: it builds a model that takes the weights of this one."""
    start: str
    """What training begins with, in words."""
    mixture: CategoricalMixture | None = None
    """The mixture that was fitted for it, where one was."""


@dataclass(frozen=True)
class StartOptions:
    """Of what a start may take."""

    seed: int = 0
    """Of what is fitted for it; the noise of positions and weights comes from torch's generator."""
    seconds: float | None = None
    """Of fitting; None: as long as it takes."""
    progress: bool = False
    """Show a progress bar."""


class TableConfig(Choice, ABC):
    """Everything that is chosen about a model of a table; with the table's shape it determines the model."""

    @abstractmethod
    def build(self, shape: TableShape) -> TableModel:
        """The model, untrained and not started: what saved weights are loaded into."""

    def start(self, shape: TableShape, train: Batch, validation: Batch, options: StartOptions | None = None) -> Started:
        """Build it, and put it where the training rows suggest."""
        return Started(self.build(shape), self, "random weights")


@dataclass(frozen=True)
class FlowConfig(TableConfig, kind="flow"):
    """A semi-discrete flow: regions of the categories, noise in them, a density of points."""

    cells: CellsConfig = field(default_factory=VoronoiConfig)
    """Regions of the categories."""
    noise: NoiseConfig = field(default_factory=ConditionalNoise)
    """Where in its region a row's point lies."""
    density: DensityConfig = field(default_factory=CouplingConfig)
    """Of the points."""
    fast: bool = False
    """On a GPU, attention multiplies in bfloat16 and trains with fused kernels."""
    train_samples: int = 1
    """Importance samples of the training objective; 1 is the ELBO."""
    validation_samples: int = 8
    """Importance samples of the values that training validates with."""

    def build(self, shape: TableShape) -> SemiDiscrete:
        geometry = self.cells.build(shape.counts, self.density.least_dim)
        dequantizer = _dequantizer(geometry, self.noise, shape, self.density.tokens, self.fast)
        density = self.density.build((shape.variables, geometry.dim), self.fast, geometry)
        return SemiDiscrete(dequantizer, density, self.train_samples, self.validation_samples)

    def start(self, shape: TableShape, train: Batch, validation: Batch, options: StartOptions | None = None) -> Started:
        """Cells and the scales of numbers where the training rows suggest; all else is learned from scratch."""
        model = self.build(shape)
        model.dequantizer.arrange(*train)
        return Started(model, self, "a flow of random weights")


@dataclass(frozen=True)
class MixtureStartConfig(TableConfig, kind="mixture-start"):
    """A flow through Voronoi cells that starts as a mixture of categoricals, fitted by expectation maximisation.

    The base of its density has a component in every cell (`CellMixture`), the noise in the cells is narrow, and the
    couplings start as the identity: the first bound is the mixture's likelihood.
    """

    dim: int = 2
    """Dimensions per variable."""
    components: int = 128
    """Of the mixture, besides one of independent variables; 0: as many as the validation rows like, up to 256."""
    blocks: int = 4
    """Coupling blocks in front of the mixture; there may be none."""
    width: int = 32
    """Width of their networks."""
    layers: int = 1
    """Attention layers of each network."""
    squashing: Profile = "root"
    """Radial profile of the map into a cell; the root leaves the middle of a cell as it is."""
    noise: ConditionalNoise = field(default_factory=lambda: ConditionalNoise(width=32, layers=1))
    """Where in its cell a row's point lies."""
    fast: bool = False
    """On a GPU, attention multiplies in bfloat16 and trains with fused kernels."""
    train_samples: int = 4
    """Importance samples of the training objective."""
    validation_samples: int = 8
    """Importance samples of the values that training validates with."""

    def build(self, shape: TableShape) -> SemiDiscrete:
        if self.components < 1:
            raise ValueError("components: got 0, which leaves them to the rows; expected the number that `start` found")
        return self._with(self._dequantizer(shape), shape)

    def start(self, shape: TableShape, train: Batch, validation: Batch, options: StartOptions | None = None) -> Started:
        """Cells apart, narrow noise, and the base the mixture that the validation rows like best."""
        options = options or StartOptions()
        dequantizer = self._dequantizer(shape)
        dequantizer.arrange_apart(*train, ordered=shape.ordered)
        assert isinstance(dequantizer.cells, VoronoiCells)
        parts = components_in_cells(dequantizer.cells, train[0], shape.numbers)
        rows, watched = (dequantizer.components_of_rows(parts, *batch) for batch in (train, validation))
        mixture = fit_mixture(
            parts.counts, rows, watched, self.components, options.seconds, options.seed, options.progress
        )
        config = replace(self, components=mixture.components - 1)
        model = config._with(dequantizer, shape)
        base = model.density.base if isinstance(model.density, Flow) else model.density
        assert isinstance(base, CellMixture)
        base.start(mixture.log_weight, mixture.log_table, parts.centre, parts.scale)
        return Started(model, config, f"a mixture of {mixture.components} products of columns", mixture)

    def _dequantizer(self, shape: TableShape) -> Dequantizer:
        geometry = VoronoiConfig(self.dim, squashing=self.squashing).build(shape.counts)
        return _dequantizer(geometry, self.noise, shape, True, self.fast)

    def _with(self, dequantizer: Dequantizer, shape: TableShape) -> SemiDiscrete:
        base = CellMixture(component_counts(shape.counts, shape.numbers), self.dim, self.components + 1)
        density = (
            token_flow(base, self.blocks, self.width, self.layers, norm=False, fast=self.fast) if self.blocks else base
        )
        return SemiDiscrete(dequantizer, density, self.train_samples, self.validation_samples)


def _dequantizer(cells: Cells, noise: NoiseConfig, shape: TableShape, tokens: bool, fast: bool) -> Dequantizer:
    density, context = noise.build(shape, cells, tokens, fast)
    return Dequantizer(cells, density, context, Numbers(shape) if shape.numbers else None)


def number_of_parameters(model: nn.Module) -> int:
    """Numbers that are trained."""
    return sum(parameter.numel() for parameter in model.parameters())
