"""Networks that compute the parameters of bijections and densities.

Those of bijections start by returning zero, so that every flow starts simple.
"""

from tessella.nets.blocks import BlockMixture
from tessella.nets.mlp import MLP
from tessella.nets.transformer import AttentionBlock, TokenTransformer

__all__ = ["MLP", "AttentionBlock", "BlockMixture", "TokenTransformer"]
