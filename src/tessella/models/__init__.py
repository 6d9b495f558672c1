"""What can be trained: models of tables, vectors, sets, texts, each with one description, one builder, one start."""

from tessella.models.any_order import AutoregressiveTable
from tessella.models.autoregressive import AutoregressiveConfig, BackoffConfig
from tessella.models.backoff import BackoffTable
from tessella.models.bound import ImportanceBound, log_mean_exp
from tessella.models.discrete import (
    BlocksConfig,
    CategoricalMixtureConfig,
    ChowLiuConfig,
    DiscreteFlowConfig,
    IndependentConfig,
    TransformerConfig,
)
from tessella.models.semidiscrete import SemiDiscrete
from tessella.models.sets import (
    BernoulliMixtureConfig,
    ConditionalBernoulliConfig,
    DPPConfig,
    ItemTransformerConfig,
    KDPPConfig,
    SemiDiscreteSets,
    SetConfig,
    SetFlowConfig,
    SetModel,
)
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
    "BackoffConfig",
    "BackoffTable",
    "BernoulliMixtureConfig",
    "BlocksConfig",
    "CategoricalMixtureConfig",
    "CausalPoints",
    "CausalText",
    "ChowLiuConfig",
    "ConditionalBernoulliConfig",
    "DPPConfig",
    "DiscreteFlowConfig",
    "DisjointText",
    "DisjointTextConfig",
    "FlowConfig",
    "ImportanceBound",
    "IndependentConfig",
    "ItemTransformerConfig",
    "KDPPConfig",
    "MixtureStartConfig",
    "SemiDiscrete",
    "SemiDiscreteSets",
    "SetConfig",
    "SetFlowConfig",
    "SetModel",
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
