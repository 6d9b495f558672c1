"""What every method of Table 1 is, on every table, in every preset."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tessella.configs import changed
from tessella.densities import CellCouplingConfig, CouplingConfig, FlatCouplingConfig, GroupCouplingConfig
from tessella.dequantizers import BinaryConfig, ConditionalNoise, SimplexConfig, VoronoiConfig
from tessella.models import (
    AutoregressiveConfig,
    BackoffConfig,
    BlocksConfig,
    CategoricalMixtureConfig,
    ChowLiuConfig,
    DiscreteFlowConfig,
    FlowConfig,
    IndependentConfig,
    MixtureStartConfig,
    TableConfig,
    TransformerConfig,
)
from tessella.training import TrainingConfig

Trained = Literal[
    "voronoi", "simplex", "binary-argmax", "discrete-flow", "blocks", "transformer", "autoregressive", "backoff"
]
Counted = Literal["independent", "chow-liu", "mixture"]
Method = Trained | Counted
Preset = Literal["best", "joined", "blind", "affine", "mixture-start", "small", "paper"]


@dataclass(frozen=True)
class Recipe:
    """What is chosen about a method for a table; methods that count have no use for the training."""

    model: TableConfig
    training: TrainingConfig = field(default_factory=TrainingConfig)


FLOW = FlowConfig(
    cells=VoronoiConfig(dim=2, spread=0.1),
    noise=ConditionalNoise(blocks=1, width=64, layers=1, base="logistic"),
    density=CellCouplingConfig(groups=4, components=16, width=128),
    fast=True,
)
FLOW_TRAINING = TrainingConfig(steps=20_000, batch_size=512, learning_rate=5e-3, optimizer="muon")
TRAINING = TrainingConfig(steps=20_000, batch_size=256, learning_rate=1e-3)


def _flows(model: FlowConfig, training: TrainingConfig) -> dict[Method, Recipe]:
    """One density behind the three dequantizers; fixed cells have as many dimensions as their geometry needs."""
    return {
        "voronoi": Recipe(model, training),
        "simplex": Recipe(replace(model, cells=SimplexConfig()), training),
        "binary-argmax": Recipe(replace(model, cells=BinaryConfig()), training),
    }


# The preset `best`: what each method is on every table. Flows are learned through the cells by gradients from a start
# that is no fitted model; their couplings move a group of columns given the cells of others.
ANY_ORDER = AutoregressiveConfig(width=192, layers=4, natural=0.25, given=0.75, orders=16)
ANY_ORDER_TRAINING = replace(TRAINING, learning_rate=5e-3, optimizer="muon", compile="fuse")
BEST: dict[Method, Recipe] = {
    **_flows(FLOW, FLOW_TRAINING),
    "discrete-flow": Recipe(DiscreteFlowConfig(), TRAINING),
    "independent": Recipe(IndependentConfig()),
    "chow-liu": Recipe(ChowLiuConfig()),
    "mixture": Recipe(CategoricalMixtureConfig()),
    "blocks": Recipe(BlocksConfig(), TRAINING),
    "transformer": Recipe(TransformerConfig(), TRAINING),
    "autoregressive": Recipe(ANY_ORDER, ANY_ORDER_TRAINING),
    "backoff": Recipe(BackoffConfig(ANY_ORDER), ANY_ORDER_TRAINING),
}
# PokerHands: no two cards are the same, which few rows of a small batch have anything to say about.
LARGE_BATCH = {"training.batch_size": 4096}
# Few rows: larger networks learn them by heart.
SMALL_NETWORK = {
    "model.width": 48,
    "model.layers": 2,
    "model.natural": 0.0,
    "model.given": 1.0,
    "model.orders": 64,
    "training.batch_size": 64,
    "training.learning_rate": 1e-2,
}

# Rows of few kinds, which components find in minutes of a CPU core; the network learns what is left, slowly enough not
# to learn it in their stead (Muon, 1e-2: 9.10 after 1,000 steps on validation rows, 9.07 so after 800).
OF_FEW_KINDS = {
    **SMALL_NETWORK,
    "model.components": 200,
    "training.optimizer": "adam",
    "training.learning_rate": 3e-3,
    "training.batch_size": 128,
}

# The preset `joined`: columns that say one thing together are one variable (`load_table(..., joined=True)`), the files
# of a Connect4 board, a forest's area and soil, a card. Fewer tokens, and nothing to learn about how they are spelled.
JOINED: dict[Method, Recipe] = {
    **_flows(FLOW, FLOW_TRAINING),
    **{
        method: BEST[method]
        for method in ("independent", "chow-liu", "mixture", "transformer", "autoregressive", "backoff")
    },
}

# The preset `blind`: flows whose couplings know no cells. They move a group of columns given all others (Voronoi,
# four minutes of half a GPU: Forests 13.033), or, in long runs, half of every column's coordinates given the other half
# (Connect4 11.900, Mushroom 9.063, Nursery 9.472).
BLIND = _flows(
    replace(
        FLOW,
        cells=VoronoiConfig(dim=2),
        noise=ConditionalNoise(blocks=4, width=64),
        density=GroupCouplingConfig(sweeps=2, groups=4, width=128, logistics=4),
    ),
    FLOW_TRAINING,
)
HALVES: dict[str, Any] = {
    "model.cells.dim": 6,
    "model.density": "coupling",
    "model.density.blocks": 8,
    "model.density.width": 128,
    "model.density.logistics": 4,
    "model.density.linear": True,
    "training.optimizer": "adam",
    "training.learning_rate": 3e-3,
    "training.compile": "fuse",
}
# On PokerHands half of a card's coordinates, which tells the card, has nothing to say to the other half: in turn, half
# of the variables move whole.
ACROSS = {
    **HALVES,
    "model.cells.dim": 2,
    "model.density.across": True,
    "model.density.logistics": 8,
    "training.optimizer": "muon",
    "training.learning_rate": 5e-3,
    **LARGE_BATCH,
}

# The preset `affine`: such flows as they were before the power profile, by affine couplings, in smaller batches.
# Voronoi, seven minutes of half a GPU: Connect4 13.112, Forests 14.557; four minutes of a third of one: PokerHands,
# simulated, 19.784.
AFFINE = _flows(
    replace(
        FLOW,
        cells=VoronoiConfig(dim=6, placement="profiles", squashing="root"),
        density=CouplingConfig(blocks=8, width=128),
    ),
    replace(TRAINING, learning_rate=2e-3),
)

# The preset `mixture-start`: a flow that begins as a mixture of categoricals, found by expectation maximisation,
# minutes on one CPU core. Where learning adds nothing to it, results say so and call it a mixture.
#   tessella reproduce tables --data mushroom --method voronoi --preset mixture-start --minutes 3
#   tessella reproduce tables --data nursery --method voronoi --preset mixture-start --minutes 2
MIXTURE_START: dict[Method, Recipe] = {"voronoi": Recipe(MixtureStartConfig(), replace(TRAINING, batch_size=64))}

# The preset `small`: minutes on one CPU core, from scratch.
#   tessella reproduce tables --data mushroom --method voronoi --preset small --minutes 6
#   tessella reproduce quantized-2d --data pinwheel                   4 minutes; KL 0.157 nats, independent variables
#                                                                     1.026 (results/quantized-2d-pinwheel.json)
SMALL: dict[Method, Recipe] = {
    **_flows(
        FlowConfig(
            cells=VoronoiConfig(dim=2, spread=0.1),
            noise=ConditionalNoise(blocks=1, width=32, layers=1, base="logistic"),
            density=CellCouplingConfig(groups=4, components=8, width=32, layers=1),
        ),
        TrainingConfig(
            steps=3_000,
            batch_size=128,
            learning_rate=5e-3,
            optimizer="muon",
            validate_every=400,
            accelerator="cpu",
        ),
    ),
    "autoregressive": Recipe(
        AutoregressiveConfig(width=64, layers=2, dropout=0.0),
        TrainingConfig(steps=3_000, batch_size=64, learning_rate=3e-3, validate_every=400, accelerator="cpu"),
    ),
}
QUANTIZED = Recipe(
    FlowConfig(
        cells=VoronoiConfig(dim=2, box=4.0, placement="profiles", squashing="softsign"),
        noise=ConditionalNoise(blocks=4, width=64, base="ball"),
        density=FlatCouplingConfig(blocks=12, width=128),
        train_samples=4,
    ),
    TrainingConfig(steps=5_000, batch_size=256, learning_rate=2e-3, validate_every=500, accelerator="cpu"),
)
"""Of the quantized 2-D toys, whatever the preset."""

# The preset `paper`: the published architecture and budget, 200,000 steps. An eighth of a GPU made about 11,000:
#   tessella reproduce tables --data mushroom --method voronoi --preset paper --minutes 5           11.740
#   tessella reproduce tables --data nursery --method voronoi --preset paper --minutes 5            10.188
PAPER_TRAINING = TrainingConfig(steps=200_000, batch_size=64, learning_rate=5e-4, validate_every=2_000)
PAPER: dict[Method, Recipe] = {
    **_flows(
        FlowConfig(
            cells=VoronoiConfig(dim=6, placement="random", box=3.0, squashing="softsign"),
            noise=ConditionalNoise(blocks=4, width=512, context=64),
            density=FlatCouplingConfig(blocks=16, width=512),
        ),
        PAPER_TRAINING,
    ),
    "discrete-flow": Recipe(DiscreteFlowConfig(), PAPER_TRAINING),
}

RECIPES: dict[Preset, dict[Method, Recipe]] = {
    "best": BEST,
    "joined": JOINED,
    "blind": BLIND,
    "affine": AFFINE,
    "mixture-start": MIXTURE_START,
    "small": SMALL,
    "paper": PAPER,
}
FLOWS: tuple[Method, ...] = ("voronoi", "simplex", "binary-argmax")
MORE_GROUPS = {"model.density.groups": 8}  # of many columns
DROPOUT = {"connect4": 0.1, "mushroom": 0.2, "nursery": 0.2, "pokerhands": 0.1, "uscensus90": 0.2}
# Columns that are independent: what a larger network can learn about them is by heart (Nursery, 400 steps, a minute of
# a CPU core: Voronoi 9.472, simplex 9.474). Binary argmax has 9.586 so, and 9.537 as on other tables after 2,213 steps.
LITTLE_TO_LEARN = {"model.density.width": 8, "model.density.layers": 1, "model.density.components": 2}
# What differs on some tables, written as on the command line (--set model.cells.dim=2).
DIFFERENCES: dict[tuple[Preset, str, Method], Mapping[str, Any]] = {
    **{
        ("best", data, flow): {
            **({"model.density.dropout": DROPOUT[data]} if data in DROPOUT else {}),
            **(MORE_GROUPS if data in ("connect4", "forests", "uscensus90") else {}),
            **(LARGE_BATCH if data == "pokerhands" else {}),
            **(LITTLE_TO_LEARN if data == "nursery" and flow != "binary-argmax" else {}),
        }
        for data in ("connect4", "forests", "mushroom", "nursery", "pokerhands", "uscensus90")
        for flow in FLOWS
    },
    **{("joined", "pokerhands", flow): LARGE_BATCH for flow in FLOWS},
    ("best", "connect4", "blocks"): {"model.dropout": 0.1},
    ("best", "forests", "mixture"): {"model.components": (50,)},
    ("best", "pokerhands", "blocks"): {"model.groups": 5, **LARGE_BATCH},
    ("best", "pokerhands", "transformer"): LARGE_BATCH,
    ("best", "connect4", "autoregressive"): {
        "model.width": 256,
        "model.layers": 5,
        "model.dropout": 0.1,
        "model.orders": 32,
    },
    ("best", "forests", "autoregressive"): {
        "model.width": 256,
        "model.dropout": 0.0,
        "model.orders": 4,
        "training.batch_size": 512,
    },
    ("best", "forests", "backoff"): {
        "model.network.width": 256,
        "model.network.dropout": 0.0,
        "model.network.orders": 4,
        "training.batch_size": 512,
    },
    ("best", "mushroom", "autoregressive"): OF_FEW_KINDS,
    ("best", "nursery", "autoregressive"): SMALL_NETWORK,
    ("best", "uscensus90", "autoregressive"): SMALL_NETWORK,
    ("best", "uscensus90", "transformer"): {
        "model.width": 64,
        "model.layers": 2,
        "training.batch_size": 64,
        "training.learning_rate": 3e-3,
    },
    ("best", "pokerhands", "autoregressive"): {
        "model.width": 128,
        "model.layers": 3,
        "model.dropout": 0.0,
        "model.orders": 1,
        **LARGE_BATCH,
    },
    ("joined", "connect4", "autoregressive"): {
        "model.width": 256,
        "model.layers": 5,
        "model.dropout": 0.1,
        "model.orders": 32,
    },
    ("joined", "forests", "autoregressive"): {
        "model.width": 256,
        "model.dropout": 0.05,
        "model.orders": 8,
        "training.batch_size": 1024,
    },
    ("joined", "forests", "backoff"): {
        "model.network.width": 320,
        "model.network.dropout": 0.1,
        "model.network.orders": 8,
        "training.batch_size": 1024,
    },
    ("joined", "forests", "mixture"): {"model.components": (50,)},
    ("joined", "pokerhands", "transformer"): LARGE_BATCH,
    ("blind", "forests", "voronoi"): {"model.cells.spread": 0.25},
    ("blind", "connect4", "voronoi"): HALVES,
    ("blind", "mushroom", "voronoi"): HALVES,
    ("blind", "pokerhands", "voronoi"): ACROSS,
    # Tails that reach the walls: see the ablation.
    ("blind", "nursery", "voronoi"): {**HALVES, "model.noise.base": "student"},
    ("mixture-start", "nursery", "voronoi"): {"model.components": 1},  # the complete grid: its columns are independent
}


def recipe_for(data: str, method: Method = "voronoi", preset: Preset = "best") -> Recipe:
    """What the results were made with: a method on a table, by its name; any other table gets what is the same on all.

    >>> recipe_for("mushroom", preset="blind").model.cells.dim
    6
    """
    if data.startswith("quantized-") and method == "voronoi":
        return QUANTIZED
    recipes = RECIPES[preset]
    if method not in recipes:
        raise ValueError(
            f"preset: got {preset!r} for {method!r}; expected 'best', or one of {', '.join(recipes)} with it"
        )
    return changed(recipes[method], DIFFERENCES.get((preset, data, method), {}))
