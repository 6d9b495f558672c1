"""What can be trained: models of tables and of vectors, each with one description, one builder and one start."""

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
from tessella.models.vectors import VectorModel, build_vectors

__all__ = [
    "AutoregressiveConfig",
    "AutoregressiveTable",
    "BlocksConfig",
    "CategoricalMixtureConfig",
    "ChowLiuConfig",
    "DiscreteFlowConfig",
    "FlowConfig",
    "IndependentConfig",
    "MixtureStartConfig",
    "SemiDiscrete",
    "StartOptions",
    "Started",
    "TableConfig",
    "TableModel",
    "TransformerConfig",
    "VectorModel",
    "build_vectors",
    "log_mean_exp",
]
