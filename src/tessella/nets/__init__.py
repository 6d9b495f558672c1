"""Networks that compute the parameters of bijections and densities.

Those of bijections start by returning zero, so that every flow starts simple.
"""

from tessella.nets.any_order import AnyOrder
from tessella.nets.attention import AttentionBlock, Stack
from tessella.nets.blocks import BlockMixture
from tessella.nets.causal import AttentionConfig, CausalAttention, CausalLSTM, CausalNet, CausalNetConfig, LSTMConfig
from tessella.nets.mlp import MLP
from tessella.nets.ragged import RaggedLogits
from tessella.nets.residual import ResidualMLP
from tessella.nets.transformer import Transformer

__all__ = [
    "MLP",
    "AnyOrder",
    "AttentionBlock",
    "AttentionConfig",
    "BlockMixture",
    "CausalAttention",
    "CausalLSTM",
    "CausalNet",
    "CausalNetConfig",
    "LSTMConfig",
    "RaggedLogits",
    "ResidualMLP",
    "Stack",
    "Transformer",
]
