"""What every method of Table 1 is, on every table, in every preset."""

from dataclasses import replace
from typing import Any, Literal

from tessella.models import SemiDiscreteConfig
from tessella.paper.presets import PAPER
from tessella.paper.tables.methods import (
    BlocksConfig,
    CountingConfig,
    DiscreteFlowConfig,
    MixtureConfig,
    Recipe,
    TransformerConfig,
)
from tessella.training import TrainingConfig

Method = Literal[
    "voronoi",
    "simplex",
    "binary-argmax",
    "discrete-flow",
    "independent",
    "chow-liu",
    "mixture",
    "blocks",
    "transformer",
]
Preset = Literal["best", "affine", "mixture-start", "paper"]

TOKEN = SemiDiscreteConfig(
    dim=6, density="token", blocks=8, width=128, layers=2, noise_blocks=4, noise_width=64, squashing="root", nets="fast"
)
TRAINING = TrainingConfig(steps=20_000, batch_size=256, learning_rate=2e-3)


def _flows(model: SemiDiscreteConfig, training: TrainingConfig) -> dict[Method, Recipe]:
    """One density behind the three dequantizers; fixed cells have as many dimensions as their geometry needs."""
    fixed: dict[str, Any] = {"dim": 0, "squashing": "softsign"}
    return {
        "voronoi": Recipe(model, training),
        "simplex": Recipe(replace(model, dequantizer="simplex", **fixed), training),
        "binary-argmax": Recipe(replace(model, dequantizer="binary-argmax", **fixed), training),
    }


# The preset `best`: what each method is on every table. Flows move all columns at once, learned through the cells by
# gradients from a start that is no fitted model, their couplings by mixtures of logistics. Voronoi:
#   tessella reproduce tables --data connect4 --method voronoi --minutes 7             a quarter of a GPU: 12.601
#   tessella reproduce tables --data forests --method voronoi --minutes 7              a quarter of a GPU: 15.299
#   tessella reproduce tables --data mushroom --method voronoi --minutes 6             a sixth of a GPU: 9.198
#   tessella reproduce tables --data nursery --method voronoi --minutes 3              a sixth of a GPU: 9.491
DEFAULTS: dict[Method, Recipe] = {
    **_flows(replace(TOKEN, modes=4), TRAINING),
    "discrete-flow": Recipe(DiscreteFlowConfig(), replace(TRAINING, learning_rate=1e-3)),
    "independent": Recipe(CountingConfig("independent")),
    "chow-liu": Recipe(CountingConfig("tree")),
    "mixture": Recipe(MixtureConfig()),
    "blocks": Recipe(BlocksConfig(), replace(TRAINING, learning_rate=1e-3)),
    "transformer": Recipe(TransformerConfig(), replace(TRAINING, learning_rate=1e-3)),
}
# PokerHands: no two cards are the same, which few rows of a small batch have anything to say about.
LARGE_BATCH = {"training.batch_size": 4096}
# What differs on some tables, written as on the command line (--set model.dim=2): BEST[table][method][field].
BEST: dict[str, dict[Method, dict[str, Any]]] = {
    "connect4": {"blocks": {"model.dropout": 0.1}},
    "forests": {"mixture": {"model.components": (50,)}},
    "pokerhands": {"blocks": {"model.groups": 5, **LARGE_BATCH}, "transformer": LARGE_BATCH},
}

# The preset `affine`: the same flows by affine couplings. Voronoi, seven minutes of half a GPU: Connect4 13.112,
# Forests 14.557; four minutes of a third of one: PokerHands, simulated, 19.784.
AFFINE = _flows(TOKEN, TRAINING)

# The preset `mixture-start`: a flow that begins as a mixture of categoricals, found by expectation maximisation,
# minutes on one CPU core. Where learning adds nothing to it, results say so and call it a mixture.
#   tessella reproduce tables --data mushroom --method voronoi --preset mixture-start --minutes 3
#   tessella reproduce tables --data nursery --method voronoi --preset mixture-start --minutes 2
SMALL = replace(
    TOKEN,
    base="classes",
    dim=2,
    blocks=4,
    width=32,
    layers=1,
    noise_blocks=2,
    noise_width=32,
    train_samples=4,
    nets="plain",
)
MIXTURE_START: dict[Method, Recipe] = {"voronoi": Recipe(SMALL, replace(TRAINING, batch_size=64, learning_rate=1e-3))}
CLASSES = {"nursery": {"model.classes": 1}}  # the complete grid: its columns are independent

# The preset `paper`: the published architecture and budget, 200,000 steps. An eighth of a GPU made about 11,000:
#   tessella reproduce tables --data mushroom --method voronoi --preset paper --minutes 5           11.740
#   tessella reproduce tables --data nursery --method voronoi --preset paper --minutes 5            10.188
PUBLISHED_RECIPES: dict[Method, Recipe] = {
    **_flows(PAPER.model, PAPER.training),
    "discrete-flow": Recipe(DiscreteFlowConfig(), PAPER.training),
}

RECIPES: dict[Preset, dict[Method, Recipe]] = {
    "best": DEFAULTS,
    "affine": AFFINE,
    "mixture-start": MIXTURE_START,
    "paper": PUBLISHED_RECIPES,
}


def differences(preset: Preset, data: str, method: Method) -> dict[str, Any]:
    """Fields in which a preset's recipe differs on this table."""
    if preset == "mixture-start":
        return CLASSES.get(data, {})
    return BEST.get(data, {}).get(method, {}) if preset == "best" else {}
