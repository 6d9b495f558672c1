"""Models of texts, one character after another: through cells, with bounds or exactly, and without cells."""

from tessella.models.texts.causal import CausalText, DisjointText
from tessella.models.texts.configs import (
    DisjointTextConfig,
    SoftmaxTextConfig,
    TextConfig,
    TextFlowConfig,
    TextModel,
    TextShape,
)
from tessella.models.texts.logistics import ConditionalLogistics
from tessella.models.texts.points import CausalPoints
from tessella.models.texts.walking import Walk, characters

__all__ = [
    "CausalPoints",
    "CausalText",
    "ConditionalLogistics",
    "DisjointText",
    "DisjointTextConfig",
    "SoftmaxTextConfig",
    "TextConfig",
    "TextFlowConfig",
    "TextModel",
    "TextShape",
    "Walk",
    "characters",
]
