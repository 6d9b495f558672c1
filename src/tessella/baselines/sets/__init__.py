"""Exact models of sets of items."""

from tessella.baselines.sets.base import SetBaseline
from tessella.baselines.sets.baskets import BasketMixture
from tessella.baselines.sets.bernoulli import BernoulliMixture, ConditionalBernoulli
from tessella.baselines.sets.determinantal import DPP, KDPP
from tessella.baselines.sets.transformer import ItemTransformer

__all__ = [
    "DPP",
    "KDPP",
    "BasketMixture",
    "BernoulliMixture",
    "ConditionalBernoulli",
    "ItemTransformer",
    "SetBaseline",
]
