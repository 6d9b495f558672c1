"""What every method of Table 1 is, on every table, in every preset."""

from dataclasses import replace
from typing import Any, Literal

from tessella.experiments.presets import PAPER
from tessella.experiments.tables_methods import (
    CountingConfig,
    DiscreteFlowConfig,
    MixtureConfig,
    Recipe,
    TransformerConfig,
)
from tessella.models import SemiDiscreteConfig
from tessella.training import TrainingConfig

Method = Literal[
    "voronoi", "simplex", "binary-argmax", "discrete-flow", "independent", "chow-liu", "mixture", "transformer"
]
Preset = Literal["best", "parallel", "ungrouped", "paper"]

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


# The preset `ungrouped`: a flow that moves all columns at once, nothing autoregressive, by affine couplings. Seven
# minutes of half a GPU: Connect4 13.112, Forests 14.557; four minutes of a third of one: PokerHands, dealt, 19.784.
UNGROUPED: dict[Method, Recipe] = {"voronoi": Recipe(TOKEN, TRAINING)}

# The preset `parallel`: the same by couplings that move by mixtures. Four minutes of half a GPU, half the steps of
# `ungrouped`: Connect4 12.684, Forests 15.012.
PARALLEL = _flows(replace(TOKEN, modes=4), TRAINING)

# The preset `best`: what each method is on every table ...
DEFAULTS: dict[Method, Recipe] = {
    **_flows(TOKEN, TRAINING),
    "discrete-flow": Recipe(DiscreteFlowConfig(), replace(TRAINING, learning_rate=1e-3)),
    "independent": Recipe(CountingConfig("independent")),
    "chow-liu": Recipe(CountingConfig("tree")),
    "mixture": Recipe(MixtureConfig()),
    "transformer": Recipe(TransformerConfig(), replace(TRAINING, learning_rate=1e-3)),
}
# Small tables: a flow that starts from latent classes, minutes on one CPU core.
SMALL: dict[str, Any] = {
    "model.base": "classes",
    "model.dim": 2,
    "model.blocks": 4,
    "model.width": 32,
    "model.layers": 1,
    "model.noise_blocks": 2,
    "model.noise_width": 32,
    "model.train_samples": 4,
    "training.batch_size": 64,
    "training.learning_rate": 1e-3,
}
# Large ones: modes coupled across groups of columns, which are drawn one group after another.
GROUPED: dict[str, Any] = {
    "model.base": "coupled",
    "model.blocks": 0,
    "model.dim": 2,
    "model.groups": 8,
    "model.classes": 16,
    "model.width": 256,
    "model.layers": 4,
    "model.noise_blocks": 1,
    "model.noise_width": 32,
    "training.learning_rate": 1e-3,
}
# PokerHands: no two cards are the same, which few rows of a small batch have anything to say about.
LARGE_BATCH = {"training.batch_size": 4096}
# ... and what differs on some, written as on the command line (--set model.dim=2): BEST[table][method][field].
# Launch lines, times and scores of Voronoi (results/tables):
#   tessella reproduce tables --data connect4 --method voronoi --minutes 4            a quarter of a GPU: 11.439
#   tessella reproduce tables --data forests --method voronoi --minutes 7             a quarter of a GPU: 12.291
#   tessella reproduce tables --data pokerhands --dealt --method voronoi --minutes 6  an eighth of a GPU: 19.634
#   tessella reproduce tables --data mushroom --method voronoi --minutes 3            one CPU core: 9.054
#   tessella reproduce tables --data nursery --method voronoi --minutes 2             one CPU core: 9.472
BEST: dict[str, dict[Method, dict[str, Any]]] = {
    "connect4": {"voronoi": {**GROUPED, "model.dropout": 0.1}},
    "forests": {"voronoi": GROUPED, "mixture": {"model.components": (50,)}},
    "mushroom": {"voronoi": SMALL},
    "nursery": {"voronoi": {**SMALL, "model.classes": 1}},
    "pokerhands": {"voronoi": {**GROUPED, "model.groups": 5, **LARGE_BATCH}, "transformer": LARGE_BATCH},
}

# The preset `paper`: the published architecture and budget, 200,000 steps. An eighth of a GPU made about 11,000:
#   tessella reproduce tables --data mushroom --method voronoi --preset paper --minutes 5           11.740
#   tessella reproduce tables --data nursery --method voronoi --preset paper --minutes 5            10.188
PUBLISHED_RECIPES: dict[Method, Recipe] = {
    **_flows(PAPER.model, PAPER.training),
    "discrete-flow": Recipe(DiscreteFlowConfig(), PAPER.training),
}

RECIPES: dict[Preset, dict[Method, Recipe]] = {
    "best": DEFAULTS,
    "parallel": PARALLEL,
    "ungrouped": UNGROUPED,
    "paper": PUBLISHED_RECIPES,
}
