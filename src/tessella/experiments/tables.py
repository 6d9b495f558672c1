"""Table 1 of the paper: every method on the same rows, under the same evaluation, as one JSON record.

tessella reproduce tables --data mushroom --method voronoi --minutes 5
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from tessella import records
from tessella.baselines import Baseline
from tessella.evaluation import Evaluation, evaluate, floor_audit
from tessella.experiments.changes import changed
from tessella.experiments.planning import Effort, matmul_precision
from tessella.experiments.presets import PAPER
from tessella.experiments.run import DataConfig, load_data
from tessella.experiments.tables_methods import (
    CountingConfig,
    DiscreteFlowConfig,
    Fitted,
    Job,
    MixtureConfig,
    Recipe,
    TransformerConfig,
    fit_method,
)
from tessella.models import SemiDiscrete, SemiDiscreteConfig
from tessella.models.semidiscrete import log_mean_exp
from tessella.training import TrainingConfig
from tessella.training.randomness import derived_seed

Method = Literal[
    "voronoi", "simplex", "binary-argmax", "discrete-flow", "independent", "chow-liu", "mixture", "transformer"
]
Preset = Literal["best", "ungrouped", "paper"]

TOKEN = SemiDiscreteConfig(
    dim=6, density="token", blocks=8, width=128, layers=2, noise_blocks=4, noise_width=64, squashing="root", nets="fast"
)
FIXED_CELLS = replace(TOKEN, dim=0, squashing="softsign")  # as many dimensions as the geometry needs
TRAINING = TrainingConfig(steps=20_000, batch_size=256, learning_rate=2e-3)

# The preset `ungrouped`: a flow that moves all columns at once. Seven minutes of half a GPU: Connect4 13.112, Forests
# 14.557; four minutes of a third of one: PokerHands, dealt, 19.784.
UNGROUPED: dict[Method, Recipe] = {"voronoi": Recipe(TOKEN, TRAINING)}

# The preset `best`: what each method is on every table ...
DEFAULTS: dict[Method, Recipe] = {
    **UNGROUPED,
    "simplex": Recipe(replace(FIXED_CELLS, dequantizer="simplex"), TRAINING),
    "binary-argmax": Recipe(replace(FIXED_CELLS, dequantizer="binary-argmax"), TRAINING),
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
#   tessella reproduce tables --data mushroom --method voronoi --minutes 3            one CPU core: 9.060
#   tessella reproduce tables --data nursery --method voronoi --minutes 2             one CPU core: 9.476
BEST: dict[str, dict[Method, dict[str, Any]]] = {
    "connect4": {"voronoi": {**GROUPED, "model.dropout": 0.1}},
    "forests": {"voronoi": GROUPED, "mixture": {"model.components": (50,)}},
    "mushroom": {"voronoi": SMALL},
    "nursery": {"voronoi": {**SMALL, "model.classes": 1}},
    "pokerhands": {"voronoi": {**GROUPED, "model.groups": 5, **LARGE_BATCH}, "transformer": LARGE_BATCH},
}

# The preset `paper`: the published architecture and budget. We never spent it: docs/results.md has what minutes gave.
PUBLISHED_RECIPES: dict[Method, Recipe] = {
    "voronoi": Recipe(PAPER.model, PAPER.training),
    "simplex": Recipe(replace(PAPER.model, dequantizer="simplex", dim=0), PAPER.training),
    "binary-argmax": Recipe(replace(PAPER.model, dequantizer="binary-argmax", dim=0), PAPER.training),
    "discrete-flow": Recipe(DiscreteFlowConfig(), PAPER.training),
}

PLANNED = {"training.validate_every", "training.checkpoint_every", "training.time_budget"}  # they follow from the steps
IW_CURVE_SAMPLES, IW_CURVE_ROWS = (1, 3, 10, 30, 100, 300), 1000


@dataclass(frozen=True)
class TableTask(Effort):
    """One cell of the table: a method, the rows, and how long."""

    data: DataConfig
    method: Method
    preset: Preset = "best"
    test_rows: int = 10_000
    """Larger test sets are evaluated on their first so many rows."""
    samples: int = 100
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe to change, {"model.dim": 2}."""

    @property
    def name(self) -> str:
        """What the record's file is called."""
        parts = [self.data.name, "dealt" if self.data.dealt else "", self.method]
        return "-".join(filter(None, [*parts, self.preset if self.preset != "best" else "", f"seed{self.seed}"]))


def recipe_of(task: TableTask) -> Recipe:
    """The preset's recipe for the table, with what the task asks for."""
    recipes = {"best": DEFAULTS, "ungrouped": UNGROUPED, "paper": PUBLISHED_RECIPES}[task.preset]
    if task.method not in recipes:
        raise ValueError(
            f"preset: got {task.preset!r} for {task.method!r}; expected 'best', or one of {', '.join(recipes)} with it"
        )
    if planned := sorted(PLANNED & set(task.changes)):
        raise ValueError(
            f"set: got {', '.join(planned)}; expected other fields, these follow from --steps or --minutes"
        )
    recipe = recipes[task.method]
    if task.preset == "best":
        recipe = changed(recipe, BEST.get(task.data.name, {}).get(task.method, {}))
    return changed(replace(recipe, training=task.applied(recipe.training)), task.changes)


def run_table(task: TableTask, folder: Path) -> dict[str, Any]:
    """Fit, evaluate, audit; the record. A value below the floor by more than three standard errors is an error."""
    table = load_data(task.data)
    job = Job(task.data, table, task.preset, recipe_of(task), folder, task.minutes, task.steps)
    with matmul_precision(task.precision):
        fitted = fit_method(job)
    with matmul_precision("highest"):
        torch.manual_seed(derived_seed(task.seed, "test"))
        codes = table.test[: task.test_rows].to(_device(fitted.model))
        result = measure(fitted.model, codes, task.samples, table.floor)
        iw_curve = importance_curve(fitted.model, codes[:IW_CURVE_ROWS], 3 * task.samples)
    audit = floor_audit(result)
    if audit is not None and not audit.passed:
        raise ArithmeticError(f"{task.name}: the value cannot be true: {audit.message}")
    exact = isinstance(fitted.model, Baseline)
    return {
        "data": table.name,
        "dealt": task.data.dealt,
        "partial": table.partial,
        "method": task.method,
        "preset": task.preset,
        **_of_fit(fitted),
        "exact": exact,
        **_of_evaluation(result),
        "test_rows_available": len(table.test),
        "iw_curve": iw_curve,
        "matmul_precision": {"training": task.precision, "evaluation": "highest"},
        **records.provenance(task.seed),
    }


def measure(model: SemiDiscrete | Baseline, codes: Tensor, samples: int, floor: float | None) -> Evaluation:
    """The bounds of `evaluation.evaluate`; of a baseline the exact value, as both of them, with 0 samples."""
    if isinstance(model, SemiDiscrete):
        return evaluate(model, codes, samples, floor)
    exact = evaluate(_AsBound(model), codes, 1, floor)  # type: ignore[arg-type]  # it asks for these weights alone
    return replace(exact, iw_samples=0)


class _AsBound:
    """An exact likelihood as a bound whose importance weights are all the same."""

    def __init__(self, model: Baseline):
        self.model = model

    def chunked_log_weights(self, codes: Tensor, samples: int) -> list[Tensor]:
        return [self.model.log_prob(codes).expand(samples, -1)]


@torch.no_grad()
def importance_curve(model: SemiDiscrete | Baseline, codes: Tensor, most: int) -> list[list[float]]:
    """[S, bound with S importance samples] for S up to `most`, all from the same weights; empty for exact values."""
    counts = [count for count in IW_CURVE_SAMPLES if count <= most]
    if isinstance(model, Baseline):
        return []
    weights = torch.cat(model.chunked_log_weights(codes, max(counts)), 1).double()  # (S, B)
    curve = []
    for count in counts:
        groups = weights[: len(weights) // count * count].view(-1, count, weights.shape[1])
        curve.append([count, -float(log_mean_exp(groups.transpose(0, 1)).mean())])
    return curve


def _device(model: SemiDiscrete | Baseline) -> torch.device:
    return model.device if isinstance(model, SemiDiscrete) else model.count.device


def _of_fit(fitted: Fitted) -> dict[str, Any]:
    model, trained = fitted.recipe.model, not isinstance(fitted.recipe.model, CountingConfig | MixtureConfig)
    return {
        "density": model.density if isinstance(model, SemiDiscreteConfig) else None,
        "parameters": fitted.parameters,
        "steps": fitted.steps,
        "seconds": round(fitted.seconds, 3),
        "stopped": fitted.stopped,
        "validation_nll": fitted.validation_nll,
        "validation_samples": fitted.model.validation_samples if isinstance(fitted.model, SemiDiscrete) else 0,
        "curve": fitted.curve,
        "model": asdict(model),
        "training": asdict(fitted.recipe.training) if trained else None,
    }


def _of_evaluation(result: Evaluation) -> dict[str, Any]:
    said = asdict(result)
    return {"test_rows": said.pop("rows"), "evaluation_seconds": round(said.pop("seconds"), 1), **said}
