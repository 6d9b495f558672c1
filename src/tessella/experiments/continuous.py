"""Table 4 of the paper: continuous tables under a disjoint mixture, a coupling flow of its size and a spline flow.

tessella reproduce continuous --data power --method mixture --minutes 5
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from tessella import records
from tessella.data import ContinuousTable, load_continuous
from tessella.experiments.changes import changed
from tessella.experiments.mixtures import Fitted, fit_density, without_cells
from tessella.experiments.tables import matmul_precision
from tessella.experiments.tables_methods import CURVE_POINTS, VALIDATIONS
from tessella.models.density import ContinuousConfig, DensityConfig, DensityModel, SplineConfig, build_density
from tessella.training import RunFolder, TrainingConfig
from tessella.training.config import Accelerator
from tessella.training.pace import measure_pace

Method = Literal["mixture", "coupling", "spline"]
Preset = Literal["best", "paper"]

# The preset `best`. Nothing in it was chosen on test rows; docs/mixtures.md says how it was found.
MIXTURE = DensityConfig(cells=256, blocks=8, component_blocks=8, width=128, embedding=64)
SPLINE = SplineConfig()
TRAINING = TrainingConfig(steps=20_000, batch_size=1_024, learning_rate=5e-3)
SPLINE_TRAINING = replace(TRAINING, learning_rate=2e-3)
# What differs on some tables, of the mixture and with it of the coupling flow that has its size.
BEST: dict[str, dict[str, Any]] = {"miniboone": {"model.cells": 16, "model.width": 64}}
# The preset `paper`: within the ranges that its appendix names, which does not say what was chosen for which table.
PAPER_MIXTURE = DensityConfig(cells=32, blocks=16, component_blocks=16, width=64, layers=3, base="gaussian")
PAPER_TRAINING = TrainingConfig(steps=100_000, batch_size=1_048, learning_rate=1e-3)


@dataclass(frozen=True)
class DensityRecipe:
    """What is chosen about a method."""

    model: ContinuousConfig
    training: TrainingConfig


@dataclass(frozen=True)
class ContinuousTask:
    """One cell of the table: a method, the rows, and how long. Of `steps` and `minutes` the first counts."""

    data: str
    method: Method
    preset: Preset = "best"
    minutes: float = 0.0
    """Training time that the steps are planned for; 0 takes the recipe's steps."""
    steps: int = 0
    seed: int = 0
    """Of initialisation and batches; what was drawn for the rows themselves always has seed 0."""
    accelerator: Accelerator = "auto"
    tf32: bool = True
    """Products of matrices in TF32 while training on a GPU; evaluation is always in full single precision."""
    progress: bool = True
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe to change, {"model.width": 8}; of a coupling flow, those of the mixture that it equals."""

    @property
    def name(self) -> str:
        """What the record's file is called."""
        parts = [self.data, self.method, self.preset if self.preset != "best" else "", f"seed{self.seed}"]
        return "-".join(filter(None, parts))


def recipe_of(task: ContinuousTask, dim: int) -> DensityRecipe:
    """The preset's recipe for a table of `dim` columns, with what the task asks for."""
    recipe = _preset(task)
    training = replace(recipe.training, seed=task.seed, accelerator=task.accelerator, progress=task.progress)
    recipe = changed(replace(recipe, training=training), task.changes)
    if task.method != "coupling":
        return recipe
    assert isinstance(recipe.model, DensityConfig)
    return replace(recipe, model=without_cells(recipe.model, dim))


def _preset(task: ContinuousTask) -> DensityRecipe:
    """Of a coupling flow, that of the mixture whose size it will have."""
    if task.method == "spline":
        if task.preset == "paper":
            raise ValueError("preset: got 'paper' for 'spline'; expected 'best', the paper has no such method")
        return DensityRecipe(SPLINE, SPLINE_TRAINING)
    if task.preset == "paper":
        return DensityRecipe(PAPER_MIXTURE, PAPER_TRAINING)
    return changed(DensityRecipe(MIXTURE, TRAINING), BEST.get(task.data, {}))


def run_continuous(task: ContinuousTask, folder: Path) -> dict[str, Any]:
    """Train, score all test rows exactly; the record."""
    table = load_continuous(task.data)
    rows = {"train": table.train, "validation": table.validation, "test": table.test}
    recipe = recipe_of(task, table.train.shape[1])
    precision = "high" if task.tf32 and task.accelerator != "cpu" and torch.cuda.is_available() else "highest"
    with matmul_precision(precision):
        training = _schedule(task, recipe, rows, folder)
        fitted = fit_density(recipe.model, rows, training, folder)
    return _record(task, table, fitted, _curve(folder), precision)


def _schedule(task: ContinuousTask, recipe: DensityRecipe, rows: dict[str, Tensor], folder: Path) -> TrainingConfig:
    """The recipe's training with its steps, validations and warm-up fixed; a budget's steps are timed first."""
    training, steps = recipe.training, task.steps or recipe.training.steps
    if task.minutes and not task.steps:
        training = replace(training, time_budget=60 * task.minutes)
        steps = _steps_planned_before(training, folder) or _steps_that_fit(training, recipe.model, rows)
    return replace(
        training,
        steps=steps,
        warmup_steps=min(training.warmup_steps, steps // 10),
        validate_every=-(-steps // VALIDATIONS),
        checkpoint_every=steps,
    )


def _steps_that_fit(training: TrainingConfig, config: ContinuousConfig, rows: dict[str, Tensor]) -> int:
    assert training.time_budget is not None
    torch.manual_seed(training.seed)
    model = DensityModel(build_density(config, rows["train"].shape[1]).to(rows["train"].dtype))
    pace = measure_pace(model, rows["train"], rows["validation"], training)
    return pace.steps_within(training.time_budget, VALIDATIONS + 2)


def _steps_planned_before(training: TrainingConfig, folder: Path) -> int:
    """Of the run in the folder, if it had the same budget: timing again would plan another run; 0 for a new folder."""
    path = RunFolder(folder).config
    there: dict[str, Any] = json.loads(path.read_text())["training"] if path.exists() else {}
    return int(there["steps"]) if there.get("time_budget") == training.time_budget else 0


def _curve(folder: Path) -> list[list[float]]:
    """[seconds, validation value], thinned."""
    validated = [row for row in RunFolder(folder).read_metrics() if row.get("validation") is not None]
    return [[row["seconds"], row["validation"]] for row in validated[:: 1 + len(validated) // CURVE_POINTS]]


def _record(
    task: ContinuousTask, table: ContinuousTable, fitted: Fitted, curve: list[list[float]], precision: str
) -> dict[str, Any]:
    return {
        "data": table.name,
        "partial": table.partial,
        "rebuilt": table.rebuilt,
        "method": task.method,
        "preset": task.preset,
        "parameters": fitted.parameters,
        "steps": fitted.fit.steps,
        "seconds": round(fitted.fit.seconds, 3),
        "stopped": fitted.fit.stopped,
        "train_rows": len(table.train),
        "validation_nll": fitted.fit.best_validation,
        "curve": curve,
        "nll": fitted.nll,
        "stderr": fitted.stderr,
        "test_rows": len(table.test),
        "matmul_precision": {"training": precision, "evaluation": "highest"},
        "changes": dict(task.changes),
        "model": asdict(fitted.config),
        "training": asdict(fitted.training),
        **records.provenance(task.seed),
    }
