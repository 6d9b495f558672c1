"""Table 4 of the paper: continuous tables under a disjoint mixture, the same flow without cells, and others.

tessella reproduce continuous --data power --method mixture --minutes 9
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tessella import records
from tessella.configs import changed, to_json
from tessella.data import Symmetries, VectorTable, augmented, load_vectors, patch_maps
from tessella.densities import DensityConfig, DisjointMixtureConfig, SplineConfig, Symmetrized
from tessella.models import VectorModel
from tessella.paper.effort import VALIDATIONS, Effort, curve, matmul_precision
from tessella.paper.toys import FittedDensity, fit_density, mean_nll, sized_like, without_cells
from tessella.training import TrainingConfig

Method = Literal["mixture", "one-cell", "spline", "coupling", "autoregressive"]
Preset = Literal["best", "paper"]

# The preset `best`. Nothing in it was chosen on test rows; docs/mixtures.md says how it was found.
MIXTURE = DisjointMixtureConfig(
    cells=64,
    blocks=0,
    component_blocks=10,
    width=256,
    embedding=64,
    transform="spline",
    network="residual",
    linear=True,
)
AUTOREGRESSIVE = SplineConfig()
TRAINING = TrainingConfig(steps=40_000, batch_size=4_096, learning_rate=1e-3, compile="fuse")
# What differs on some tables, of the mixture and with it of the flows that have its size.
BEST: dict[str, dict[str, Any]] = {
    "bsds300": {"model.width": 512, "training.optimizer": "muon", "training.learning_rate": 5e-3},
    "miniboone": {"model.cells": 4, "model.width": 64, "model.embedding": 16, "training.batch_size": 256},
}
# Augmentation, which is the same for all methods.
SYMMETRIES: dict[str, Symmetries] = {"bsds300": "square"}
# The preset `paper`: within the ranges that its appendix names, which does not say what was chosen for which table.
PAPER_MIXTURE = DisjointMixtureConfig(
    cells=32, blocks=16, component_blocks=16, width=64, layers=3, squashing="softsign", base="gaussian", steady=0.0
)
PAPER_TRAINING = TrainingConfig(steps=100_000, batch_size=1_048, learning_rate=1e-3)
OF_THE_PAPER = ("mixture", "coupling")


@dataclass(frozen=True)
class DensityRecipe:
    """What is chosen about a method."""

    model: DensityConfig
    training: TrainingConfig
    symmetries: Symmetries = "none"
    """Augmentation: training sees patches of images under these symmetries, see `SymmetricPatches`."""


@dataclass(frozen=True)
class VectorTask(Effort):
    """One cell of the table: a method, the rows, and how long. What was drawn for the rows always has seed 0."""

    data: str
    method: Method
    preset: Preset = "best"
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe to change, {"model.width": 8}; of other flows, those of the mixture that they equal."""
    variant: str = ""
    """What was changed, in a word, for the record's name."""

    @property
    def name(self) -> str:
        """What the record's file is called."""
        preset = self.preset if self.preset != "best" else ""
        return "-".join(filter(None, [self.data, self.method, preset, self.variant, f"seed{self.seed}"]))


def recipe_of(task: VectorTask, dim: int) -> DensityRecipe:
    """The preset's recipe for a table of `dim` columns, with what the task asks for."""
    recipe = _preset(task)
    recipe = changed(replace(recipe, training=task.applied(recipe.training)), task.changes)
    model = recipe.model
    if isinstance(model, DisjointMixtureConfig) and task.method != "mixture":
        if task.method == "one-cell":
            model = replace(model, cells=1)
        else:
            transform = "affine" if task.method == "coupling" else model.transform
            model = sized_like(replace(without_cells(model, dim), transform=transform), model, dim)
    return replace(recipe, model=model)


def _preset(task: VectorTask) -> DensityRecipe:
    """Of flows without cells, that of the mixture whose size they will have."""
    if task.preset == "paper":
        if task.method not in OF_THE_PAPER:
            raise ValueError(f"preset: got 'paper' for {task.method!r}; expected 'best', the paper has no such method")
        return DensityRecipe(PAPER_MIXTURE, PAPER_TRAINING)
    symmetries = SYMMETRIES.get(task.data, "none")
    if task.method == "autoregressive":
        return DensityRecipe(AUTOREGRESSIVE, TRAINING, symmetries)
    return changed(DensityRecipe(MIXTURE, TRAINING, symmetries), BEST.get(task.data, {}))


def run_vectors(task: VectorTask, folder: Path) -> dict[str, Any]:
    """Train, score all test rows exactly; the record."""
    table = load_vectors(task.data)
    recipe = recipe_of(task, table.train.shapes[0][1])
    rows = table.parts | {"train": augmented(table, recipe.symmetries)}
    with matmul_precision(task.precision):
        fitted = fit_density(recipe.model, rows, recipe.training, folder, VALIDATIONS)
    return _record(task, recipe, table, fitted) | {"curve": curve(folder)}


def symmetrized(fitted: FittedDensity, table: VectorTable, symmetries: Symmetries) -> dict[str, float] | None:
    """What the mean of the density over the symmetries that it was trained with says about the test rows."""
    if symmetries == "none":
        return None
    maps = patch_maps(symmetries, *fitted.density.event_shape).to(next(fitted.density.parameters()))
    with matmul_precision("highest"):
        nll, stderr = mean_nll(VectorModel(Symmetrized(fitted.density, maps)), table.test)
    return {"nll": nll, "stderr": stderr}


def _record(task: VectorTask, recipe: DensityRecipe, table: VectorTable, fitted: FittedDensity) -> dict[str, Any]:
    return {
        "data": table.name,
        "partial": table.partial,
        "rebuilt": table.rebuilt,
        "method": task.method,
        "preset": task.preset,
        "variant": task.variant,
        "parameters": fitted.parameters,
        "steps": fitted.fit.steps,
        "seconds": round(fitted.fit.seconds, 3),
        "stopped": fitted.fit.stopped,
        "train_rows": len(table.train),
        "symmetries": recipe.symmetries,
        "validation_nll": fitted.fit.best_validation,
        "nll": fitted.nll,
        "stderr": fitted.stderr,
        "symmetrized": symmetrized(fitted, table, recipe.symmetries),
        "test_rows": len(table.test),
        "matmul_precision": {"training": task.precision, "evaluation": "highest"},
        "changes": dict(task.changes),
        "model": to_json(fitted.config),
        "training": to_json(fitted.training),
        **records.provenance(task.seed),
    }
