"""Networks that compute the parameters of bijections. All start by returning zero, so that every flow starts simple."""

from tessella.nets.mlp import MLP
from tessella.nets.transformer import TokenTransformer

__all__ = ["MLP", "TokenTransformer"]
