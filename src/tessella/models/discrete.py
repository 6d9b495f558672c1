"""Exact models of rows of categories, described as models of tables are: the networks and counts of `baselines`."""

from dataclasses import dataclass

from tessella.baselines import (
    BlockAutoregressiveMixture,
    CategoricalMixture,
    CausalTransformer,
    ChowLiu,
    DiscreteFlow,
    Independent,
)
from tessella.contracts import Batch
from tessella.data.tables.shape import TableShape
from tessella.models.tables import Started, StartOptions, TableConfig


def _counts(shape: TableShape) -> tuple[int, ...]:
    if shape.numbers:
        raise ValueError(
            f"table: got {shape.numbers} columns of numbers; expected categories only, as this model has nothing else. "
            "TabularFlow (`tessella fit`) takes numbers as ranges for it; flows take them as they are"
        )
    return shape.counts


@dataclass(frozen=True)
class TransformerConfig(TableConfig, kind="transformer"):
    """`CausalTransformer`."""

    width: int = 256
    """Of the residual stream."""
    layers: int = 6
    """Attention layers."""
    dropout: float = 0.1
    """Share that is left out in training."""

    def build(self, shape: TableShape) -> CausalTransformer:
        return CausalTransformer(_counts(shape), self.width, self.layers, self.dropout)


@dataclass(frozen=True)
class BlocksConfig(TableConfig, kind="blocks"):
    """`BlockAutoregressiveMixture`."""

    groups: int = 8
    """Groups of columns, each modelled given those before it."""
    components: int = 16
    """Of each group's mixture."""
    width: int = 256
    """Of the residual stream."""
    layers: int = 4
    """Attention layers."""
    dropout: float = 0.0
    """Share that is left out in training."""
    fast: bool = True
    """On a GPU, attention multiplies in bfloat16 and trains with fused kernels."""

    def build(self, shape: TableShape) -> BlockAutoregressiveMixture:
        size = (self.groups, self.components, self.width, self.layers, self.dropout, self.fast)
        return BlockAutoregressiveMixture(_counts(shape), *size)

    def start(self, shape: TableShape, train: Batch, validation: Batch, options: StartOptions | None = None) -> Started:
        """Near independent columns."""
        model = self.build(shape)
        model.start(*train)
        return Started(model, self, "independent columns")


@dataclass(frozen=True)
class DiscreteFlowConfig(TableConfig, kind="discrete-flow"):
    """`DiscreteFlow`."""

    layers: int = 8
    """Discrete layers."""
    width: int = 512
    """Of their networks."""
    temperature: float = 2.0
    """Of the straight-through gradients."""

    def build(self, shape: TableShape) -> DiscreteFlow:
        return DiscreteFlow(_counts(shape), self.layers, self.width, self.temperature)


@dataclass(frozen=True)
class CategoricalMixtureConfig(TableConfig, kind="mixture"):
    """`CategoricalMixture`: the validation rows choose among these numbers of components."""

    components: tuple[int, ...] = (50, 100, 200)
    """To choose from."""
    iterations: int = 500
    """Of expectation maximisation, at most."""

    def build(self, shape: TableShape) -> CategoricalMixture:
        return CategoricalMixture(_counts(shape), self.components[0])


@dataclass(frozen=True)
class IndependentConfig(TableConfig, kind="independent"):
    """`Independent`: nothing to choose."""

    def build(self, shape: TableShape) -> Independent:
        return Independent(_counts(shape))


@dataclass(frozen=True)
class ChowLiuConfig(TableConfig, kind="chow-liu"):
    """`ChowLiu`: nothing to choose."""

    def build(self, shape: TableShape) -> ChowLiu:
        return ChowLiu(_counts(shape))
