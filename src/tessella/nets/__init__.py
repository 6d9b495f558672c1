"""Networks that compute the parameters of bijections. All start by returning zero, so that every flow starts simple."""

from tessella.nets.mlp import MLP
from tessella.nets.staged import StagedTransformer
from tessella.nets.transformer import AttentionBlock, TokenTransformer

__all__ = ["MLP", "AttentionBlock", "StagedTransformer", "TokenTransformer"]
