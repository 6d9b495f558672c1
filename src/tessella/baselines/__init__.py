"""What a user would try first: models of rows with exact likelihoods, to stand beside ours in every table."""

from tessella.baselines.base import Baseline
from tessella.baselines.blocks import BlockAutoregressiveMixture
from tessella.baselines.categorical_mixture import CategoricalMixture
from tessella.baselines.chow_liu import ChowLiu
from tessella.baselines.discrete_flow import DiscreteFlow
from tessella.baselines.independent import Independent
from tessella.baselines.transformer import CausalTransformer

BASELINES: dict[str, type[Baseline]] = {
    "independent": Independent,
    "chow-liu": ChowLiu,
    "mixture": CategoricalMixture,
    "blocks": BlockAutoregressiveMixture,
    "causal-transformer": CausalTransformer,
    "discrete-flow": DiscreteFlow,
}

__all__ = [
    "BASELINES",
    "Baseline",
    "BlockAutoregressiveMixture",
    "CategoricalMixture",
    "CausalTransformer",
    "ChowLiu",
    "DiscreteFlow",
    "Independent",
]
