"""Table 4 of the paper: continuous tables under a disjoint mixture, a coupling flow of its size and a spline flow.

tessella reproduce continuous --data power --method mixture --minutes 5
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tessella import records
from tessella.configs import changed, to_json
from tessella.data import VectorTable, load_vectors
from tessella.densities import DensityConfig, DisjointMixtureConfig, SplineConfig
from tessella.paper.effort import VALIDATIONS, Effort, curve, matmul_precision
from tessella.paper.toys import FittedDensity, fit_density, without_cells
from tessella.training import TrainingConfig

Method = Literal["mixture", "coupling", "spline"]
Preset = Literal["best", "paper"]

# The preset `best`. Nothing in it was chosen on test rows; docs/mixtures.md says how it was found.
MIXTURE = DisjointMixtureConfig(cells=256, blocks=8, component_blocks=8, width=128, embedding=64, squashing="root")
SPLINE = SplineConfig()
TRAINING = TrainingConfig(steps=20_000, batch_size=1_024, learning_rate=2e-3)
COUPLING_TRAINING = replace(TRAINING, learning_rate=5e-3)
# What differs on some tables, of the mixture and with it of the coupling flow that has its size.
BEST: dict[str, dict[str, Any]] = {
    "bsds300": {"model.cells": 64},
    "miniboone": {"model.cells": 16, "model.width": 64},
}
# The preset `paper`: within the ranges that its appendix names, which does not say what was chosen for which table.
PAPER_MIXTURE = DisjointMixtureConfig(
    cells=32, blocks=16, component_blocks=16, width=64, layers=3, squashing="softsign", base="gaussian"
)
PAPER_TRAINING = TrainingConfig(steps=100_000, batch_size=1_048, learning_rate=1e-3)


@dataclass(frozen=True)
class DensityRecipe:
    """What is chosen about a method."""

    model: DensityConfig
    training: TrainingConfig


@dataclass(frozen=True)
class VectorTask(Effort):
    """One cell of the table: a method, the rows, and how long. What was drawn for the rows always has seed 0."""

    data: str
    method: Method
    preset: Preset = "best"
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe to change, {"model.width": 8}; of a coupling flow, those of the mixture that it equals."""

    @property
    def name(self) -> str:
        """What the record's file is called."""
        parts = [self.data, self.method, self.preset if self.preset != "best" else "", f"seed{self.seed}"]
        return "-".join(filter(None, parts))


def recipe_of(task: VectorTask, dim: int) -> DensityRecipe:
    """The preset's recipe for a table of `dim` columns, with what the task asks for."""
    recipe = _preset(task)
    recipe = changed(replace(recipe, training=task.applied(recipe.training)), task.changes)
    if task.method != "coupling":
        return recipe
    assert isinstance(recipe.model, DisjointMixtureConfig)
    return replace(recipe, model=without_cells(recipe.model, dim))


def _preset(task: VectorTask) -> DensityRecipe:
    """Of a coupling flow, that of the mixture whose size it will have."""
    if task.method == "spline":
        if task.preset == "paper":
            raise ValueError("preset: got 'paper' for 'spline'; expected 'best', the paper has no such method")
        return DensityRecipe(SPLINE, TRAINING)
    if task.preset == "paper":
        return DensityRecipe(PAPER_MIXTURE, PAPER_TRAINING)
    training = COUPLING_TRAINING if task.method == "coupling" else TRAINING
    return changed(DensityRecipe(MIXTURE, training), BEST.get(task.data, {}))


def run_vectors(task: VectorTask, folder: Path) -> dict[str, Any]:
    """Train, score all test rows exactly; the record."""
    table = load_vectors(task.data)
    rows = {"train": table.train, "validation": table.validation, "test": table.test}
    recipe = recipe_of(task, table.train.shapes[0][1])
    with matmul_precision(task.precision):
        fitted = fit_density(recipe.model, rows, recipe.training, folder, VALIDATIONS)
    return _record(task, table, fitted, curve(folder))


def _record(task: VectorTask, table: VectorTable, fitted: FittedDensity, curve: list[list[float]]) -> dict[str, Any]:
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
        "matmul_precision": {"training": task.precision, "evaluation": "highest"},
        "changes": dict(task.changes),
        "model": to_json(fitted.config),
        "training": to_json(fitted.training),
        **records.provenance(task.seed),
    }
