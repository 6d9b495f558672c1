"""Networks that compute the parameters of bijections and densities.

Those of bijections start by returning zero, so that every flow starts simple. A `StagedTransformer` has no last layer
of its own: what reads its answers starts that at zero.
"""

from tessella.nets.blocks import BlockMixture
from tessella.nets.mlp import MLP
from tessella.nets.staged import StagedTransformer
from tessella.nets.transformer import AttentionBlock, TokenTransformer

__all__ = ["MLP", "AttentionBlock", "BlockMixture", "StagedTransformer", "TokenTransformer"]
