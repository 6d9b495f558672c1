"""What every method of Table 2 is, in every preset."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tessella.configs import changed
from tessella.densities.sets import ContinuousSetConfig, CouplingSetConfig, GaussianBaseConfig, MixtureBaseConfig
from tessella.dequantizers import BinaryConfig, SimplexConfig, VoronoiConfig
from tessella.models import (
    BernoulliMixtureConfig,
    ConditionalBernoulliConfig,
    DPPConfig,
    ItemTransformerConfig,
    KDPPConfig,
    SetConfig,
    SetFlowConfig,
)
from tessella.training import TrainingConfig

Flow = Literal["voronoi", "simplex", "binary-argmax", "coupling"]
Exact = Literal["independent", "mixture", "dpp", "kdpp", "transformer"]
Method = Flow | Exact
Preset = Literal["best", "base", "gaussian", "paper"]


@dataclass(frozen=True)
class SetRecipe:
    """What is chosen about a method; one that is fitted at its start has no use for the training."""

    model: SetConfig
    training: TrainingConfig


TRAINING = TrainingConfig(steps=4_000, batch_size=512, learning_rate=2e-3)
FLOW_TRAINING = replace(TRAINING, steps=6_000, learning_rate=1e-3)
CONTINUOUS_TRAINING = replace(FLOW_TRAINING, validation_rows=1_000)  # whose divergence is exact
MIXTURE = MixtureBaseConfig()
COUPLING = SetFlowConfig(density=CouplingSetConfig(base=MIXTURE, blocks=4, width=64))
CONTINUOUS = replace(COUPLING, density=ContinuousSetConfig(base=MIXTURE, flows=1, width=64, trace="hutchinson"))

# The preset `best`. Flows lead to a base with a bump at every item, which starts with the items' frequencies and learns
# kinds of sets; so it is the base that tells items apart, and what the flow adds is the difference to the preset
# `base`, the same without a flow. Simplex has 4 x 764 dimensions, too many for bumps and for an exact divergence: its
# flow is of couplings, from a Gaussian. So is that of binary argmax from a Gaussian, whose noise fills the orthants.
BEST: dict[Method, SetRecipe] = {
    "voronoi": SetRecipe(CONTINUOUS, CONTINUOUS_TRAINING),
    "coupling": SetRecipe(COUPLING, replace(FLOW_TRAINING, compile="fuse")),
    "simplex": SetRecipe(
        SetFlowConfig(
            cells=SimplexConfig(), density=CouplingSetConfig(base=GaussianBaseConfig(), blocks=4, width=128), fast=True
        ),
        replace(FLOW_TRAINING, learning_rate=1e-3, compile="fuse"),
    ),
    "binary-argmax": SetRecipe(
        SetFlowConfig(
            cells=BinaryConfig(),
            density=ContinuousSetConfig(base=GaussianBaseConfig(), flows=2, width=64, trace="hutchinson"),
        ),
        replace(CONTINUOUS_TRAINING, learning_rate=2e-3),
    ),
    "independent": SetRecipe(ConditionalBernoulliConfig(), TRAINING),
    "mixture": SetRecipe(BernoulliMixtureConfig(), TRAINING),
    "dpp": SetRecipe(DPPConfig(), replace(TRAINING, learning_rate=1e-2)),
    "kdpp": SetRecipe(KDPPConfig(), replace(TRAINING, learning_rate=1e-2)),
    "transformer": SetRecipe(ItemTransformerConfig(), replace(TRAINING, learning_rate=1e-3)),
}

# The preset `base`: Voronoi cells and the base alone.
BASE: dict[Method, SetRecipe] = {
    "coupling": SetRecipe(replace(COUPLING, density=CouplingSetConfig(base=MIXTURE, blocks=0)), FLOW_TRAINING)
}

# The preset `gaussian`: the flow learns everything, also how frequent items are.
WIDE = VoronoiConfig(dim=6, shared=True)
GAUSSIAN: dict[Method, SetRecipe] = {
    "voronoi": SetRecipe(
        replace(
            CONTINUOUS,
            cells=WIDE,
            density=ContinuousSetConfig(base=GaussianBaseConfig(), flows=2, width=128, trace="hutchinson"),
        ),
        replace(CONTINUOUS_TRAINING, learning_rate=2e-3),
    ),
    "coupling": SetRecipe(
        replace(
            COUPLING,
            cells=WIDE,
            density=CouplingSetConfig(
                base=GaussianBaseConfig(), blocks=8, width=128, layers=2, logistics=4, linear=True
            ),
            fast=True,
        ),
        replace(FLOW_TRAINING, learning_rate=3e-3, compile="fuse"),
    ),
}

# The preset `paper`: 12 continuous flows of transformers of 2 layers (their width is not published), from a Gaussian,
# AdamW. Hutchinson's estimate and the adjoint equation in training; the number of steps is not published.
PAPER_DENSITY = ContinuousSetConfig(
    base=GaussianBaseConfig(), flows=12, width=128, layers=2, trace="hutchinson", gradients="adjoint"
)
PAPER_TRAINING = TrainingConfig(
    steps=100_000, batch_size=256, learning_rate=1e-3, optimizer="adamw", weight_decay=1e-6, validation_rows=1_000
)
PAPER_CELLS = VoronoiConfig(dim=6, shared=True, placement="random", squashing="softsign")
PAPER: dict[Method, SetRecipe] = {
    "voronoi": SetRecipe(SetFlowConfig(cells=PAPER_CELLS, density=PAPER_DENSITY), PAPER_TRAINING),
    "binary-argmax": SetRecipe(SetFlowConfig(cells=BinaryConfig(), density=PAPER_DENSITY), PAPER_TRAINING),
}

RECIPES: dict[Preset, dict[Method, SetRecipe]] = {"best": BEST, "base": BASE, "gaussian": GAUSSIAN, "paper": PAPER}
# What differs on some data, written as on the command line.
DIFFERENCES: dict[tuple[Preset, str, Method], Mapping[str, Any]] = {}


def recipe_for(data: str, method: Method, preset: Preset = "best") -> SetRecipe:
    """What the results were made with.

    >>> recipe_for("retail", "kdpp").model.rank
    65
    """
    recipes = RECIPES[preset]
    if method not in recipes:
        raise ValueError(f"preset: got {preset!r} for {method!r}; expected 'best', or {', '.join(recipes)} with it")
    return changed(recipes[method], DIFFERENCES.get((preset, data, method), {}))
