"""What can be trained: models of tables, vectors and texts, each with one description, one builder and one start."""

from tessella.models.any_order import AutoregressiveTable
from tessella.models.autoregressive import AutoregressiveConfig
from tessella.models.discrete import (
    BlocksConfig,
    CategoricalMixtureConfig,
    ChowLiuConfig,
    DiscreteFlowConfig,
    IndependentConfig,
    TransformerConfig,
)
from tessella.models.semidiscrete import SemiDiscrete, log_mean_exp
from tessella.models.tables import FlowConfig, MixtureStartConfig, Started, StartOptions, TableConfig, TableModel
from tessella.models.texts import (
    CausalPoints,
    CausalText,
    DisjointText,
    DisjointTextConfig,
    SoftmaxTextConfig,
    TextConfig,
    TextFlowConfig,
    TextModel,
    TextShape,
    characters,
)
from tessella.models.vectors import VectorModel, build_vectors

__all__ = [
    "AutoregressiveConfig",
    "AutoregressiveTable",
    "BlocksConfig",
    "CategoricalMixtureConfig",
    "CausalPoints",
    "CausalText",
    "ChowLiuConfig",
    "DiscreteFlowConfig",
    "DisjointText",
    "DisjointTextConfig",
    "FlowConfig",
    "IndependentConfig",
    "MixtureStartConfig",
    "SemiDiscrete",
    "SoftmaxTextConfig",
    "StartOptions",
    "Started",
    "TableConfig",
    "TableModel",
    "TextConfig",
    "TextFlowConfig",
    "TextModel",
    "TextShape",
    "TransformerConfig",
    "VectorModel",
    "build_vectors",
    "characters",
    "log_mean_exp",
]
