"""Densities of sets from their typed descriptions."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from tessella.bijections import Chain, ContinuousFlow, ItemNetwork
from tessella.bijections.continuous import TOLERANCE, Gradients, Trace
from tessella.configs import Choice
from tessella.data.itemsets.shape import SetShape
from tessella.densities.sets.bases import GaussianItems, SetBase
from tessella.densities.sets.flow import SetFlowDensity, item_couplings
from tessella.densities.sets.kinds import KindsOfSets
from tessella.densities.sets.mixture import ItemMixture
from tessella.nets import Transformer
from tessella.nets.attention import Activation, Attention


class SetBaseConfig(Choice, ABC):
    """What is chosen about the base of a flow of sets."""

    @abstractmethod
    def build(self, shape: SetShape, dim: int) -> SetBase:
        """The base of points (most, dim)."""


@dataclass(frozen=True)
class GaussianBaseConfig(SetBaseConfig, kind="gaussian"):
    """Normal points: the flow learns everything, also how frequent items are."""

    def build(self, shape: SetShape, dim: int) -> GaussianItems:
        return GaussianItems(shape.most, dim)


@dataclass(frozen=True)
class MixtureBaseConfig(SetBaseConfig, kind="mixture"):
    """`ItemMixture`: a bump at every item, kinds of sets, no item twice. It starts with the items' frequencies."""

    components: int = 256
    """Kinds of sets."""
    rank: int = 16
    """Dimensions in which they differ."""
    prior: float = 3.0
    """Strength of the prior on these differences."""

    def build(self, shape: SetShape, dim: int) -> ItemMixture:
        kinds = KindsOfSets(shape.items, self.components, self.rank, self.prior)
        return ItemMixture(kinds, shape.most, dim)


class SetDensityConfig(Choice, ABC):
    """What is chosen about a density of the points of a set."""

    base: SetBaseConfig
    """What the flow leads to."""

    @abstractmethod
    def build(self, shape: SetShape, dim: int, fast: bool = False) -> SetFlowDensity:
        """The density of points (most, dim); fast: see `Transformer`."""


@dataclass(frozen=True)
class CouplingSetConfig(SetDensityConfig, kind="coupling"):
    """Discrete time: half of every item's coordinates move given the other half of all items'."""

    base: SetBaseConfig = field(default_factory=MixtureBaseConfig)
    """What the flow leads to."""
    blocks: int = 4
    """Coupling blocks; 0: the base alone."""
    width: int = 64
    """Width of the networks."""
    layers: int = 1
    """Attention layers of each network."""
    logistics: int = 0
    """Coordinates move by the distribution function of a mixture of so many logistics; 0: affinely."""
    linear: bool = False
    """A linear map of each item's coordinates between every two blocks."""

    def build(self, shape: SetShape, dim: int, fast: bool = False) -> SetFlowDensity:
        size = (self.blocks, self.width, self.layers, self.logistics, self.linear)
        parts = item_couplings(dim, *size, fast=fast) if self.blocks else []
        return SetFlowDensity(self.base.build(shape, dim), Chain(*parts) if parts else None)


@dataclass(frozen=True)
class ContinuousSetConfig(SetDensityConfig, kind="continuous"):
    """Continuous time: all coordinates of all items move at once, along a field that attention computes."""

    base: SetBaseConfig = field(default_factory=MixtureBaseConfig)
    """What the flow leads to."""
    flows: int = 2
    """Continuous flows, one after another; the paper has 12."""
    width: int = 64
    """Width of the networks."""
    layers: int = 2
    """Attention layers of each network; the paper has 2 or 3."""
    attention: Attention = "l2"
    """By distances, or by dot products."""
    activation: Activation = "gelu"
    """Of the networks."""
    trace: Trace = "exact"
    """In training; evaluation is always exact."""
    tolerance: float = TOLERANCE
    """Absolute and relative, of the solver."""
    gradients: Gradients = "steps"
    """Of the solver's steps; or by solving the adjoint equation, the paper's."""

    def build(self, shape: SetShape, dim: int, fast: bool = False) -> SetFlowDensity:
        flows = [self._flow(dim) for _ in range(self.flows)]
        return SetFlowDensity(self.base.build(shape, dim), Chain(*flows) if flows else None)

    def _flow(self, dim: int) -> ContinuousFlow:
        net = Transformer(
            dim,
            dim,
            self.width,
            self.layers,
            positions=None,
            context=1,
            attention=self.attention,
            activation=self.activation,
        )
        return ContinuousFlow(ItemNetwork(net), self.trace, self.tolerance, self.gradients)
