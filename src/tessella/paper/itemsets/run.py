"""Table 2 of the paper: every method on the same sets, under the same evaluation, as one JSON record.

tessella reproduce itemsets --data retail --method voronoi --minutes 8
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from tessella import records
from tessella.bijections import ContinuousFlow
from tessella.configs import changed, to_json
from tessella.contracts import Batch
from tessella.data import ItemSets, load_itemsets
from tessella.evaluation import Evaluation, entropy_floor_audit, evaluate, sandwich_audit
from tessella.models import ConditionalBernoulliConfig, SemiDiscreteSets, SetFlowConfig, SetModel
from tessella.models.tables import number_of_parameters
from tessella.paper.effort import VALIDATIONS, Effort, curve, matmul_precision
from tessella.paper.itemsets.hutchinson import compare_traces
from tessella.paper.itemsets.recipes import Method, Preset, SetRecipe, recipe_for
from tessella.training import FitResult, TrainingConfig, fit
from tessella.training.budget import within_budget
from tessella.training.randomness import derived_seed

PLANNED = {"training.validate_every", "training.checkpoint_every", "training.time_budget"}  # they follow from the steps


@dataclass(frozen=True)
class SetTask(Effort):
    """One cell of the table: a method, the sets, and how long."""

    data: str
    method: Method
    preset: Preset = "best"
    test_rows: int = 20_000
    """Larger test sets are evaluated on their first so many sets."""
    samples: int = 40
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe to change, {"model.cells.dim": 2}."""
    variant: str = ""
    """What was changed, in a word; a part of the record's name."""

    @property
    def name(self) -> str:
        """What the record's file is called."""
        parts = [self.data, self.method, self.preset if self.preset != "best" else "", self.variant]
        return "-".join(filter(None, [*parts, f"seed{self.seed}"]))


@dataclass(frozen=True)
class FittedSets:
    """A model with its best weights, in evaluation mode, and what it took."""

    model: SetModel
    recipe: SetRecipe
    seconds: float
    fit: FitResult | None
    """None where nothing is trained by gradients."""


def recipe_of(task: SetTask) -> SetRecipe:
    """The preset's recipe, with what the task asks for."""
    if planned := sorted(PLANNED & set(task.changes)):
        raise ValueError(
            f"set: got {', '.join(planned)}; expected other fields, these follow from --steps or --minutes"
        )
    recipe = recipe_for(task.data, task.method, task.preset)
    return changed(replace(recipe, training=task.applied(recipe.training)), task.changes)


def fit_sets(recipe: SetRecipe, sets: ItemSets, folder: Path) -> FittedSets:
    """Start from all training sets, then train, or continue what lies in the folder."""
    torch.manual_seed(recipe.training.seed)
    began = time.perf_counter()
    model = recipe.model.start(sets.shape, *sets.train.batch(torch.arange(len(sets.train))))
    if isinstance(recipe.model, ConditionalBernoulliConfig):
        return FittedSets(model.eval(), recipe, time.perf_counter() - began, None)
    parts = sets.train, sets.validation
    training, pace = within_budget(recipe.training, lambda: model, *parts, validations=VALIDATIONS, folder=folder)
    about = {"data": sets.name, "model": to_json(recipe.model), "partial": sets.partial}
    result = fit(model, *parts, training, folder, about, pace=pace)
    return FittedSets(model, replace(recipe, training=training), result.seconds, result)


def run_itemsets(task: SetTask, folder: Path) -> dict[str, Any]:
    """Fit, evaluate, audit; the record. A value below the floor by more than three standard errors is an error."""
    sets = load_itemsets(task.data)
    with matmul_precision(task.precision):
        fitted = fit_sets(recipe_of(task), sets, folder)
    model = fitted.model
    device = next(model.buffers()).device
    test = sets.test.to(device).batch(torch.arange(min(task.test_rows, len(sets.test))))
    with matmul_precision("highest"):
        torch.manual_seed(derived_seed(task.seed, "test"))
        result = evaluate(model, test, task.samples, sets.entropy_floor)
        evaluations = field_evaluations(model)
        sandwich = sandwich_audit(model, samples=task.samples)
        traces = (
            compare_traces(model, test, 10 * task.samples)
            if isinstance(model, SemiDiscreteSets) and evaluations
            else None
        )
    audit = entropy_floor_audit(result)
    if audit is not None and not audit.passed:
        raise ArithmeticError(f"{task.name}: the value cannot be true: {audit.message}")
    return {
        "data": sets.name,
        "partial": sets.partial,
        "method": task.method,
        "preset": task.preset,
        "variant": task.variant,
        "changes": dict(task.changes),
        **_of_fit(fitted, sets, folder),
        "exact": model.exact,
        **_of_evaluation(result),
        "test_rows_available": len(sets.test),
        "field_evaluations": evaluations,
        "sandwich": asdict(sandwich),
        "hutchinson": traces,
        "matmul_precision": {"training": task.precision, "evaluation": "highest"},
        **records.provenance(task.seed),
    }


def field_evaluations(model: SetModel) -> list[int]:
    """Of each continuous flow, in its last solution; empty where there are none."""
    return [part.evaluations for part in model.modules() if isinstance(part, ContinuousFlow)]


@torch.no_grad()
def _validation(model: SetModel, batch: Batch) -> float:
    return float(model.nll(*batch).mean())


def _of_fit(fitted: FittedSets, sets: ItemSets, folder: Path) -> dict[str, Any]:
    model, config, result = fitted.model, fitted.recipe.model, fitted.fit
    flow = config if isinstance(config, SetFlowConfig) else None
    validation = sets.validation.batch(torch.arange(len(sets.validation)))
    found = result.best_validation if result else _validation(model, validation)
    training: TrainingConfig | None = fitted.recipe.training if result else None
    return {
        "density": flow.density.kind if flow else None,
        "base": flow.density.base.kind if flow else None,
        "parameters": number_of_parameters(model) or sets.shape.items,
        "steps": result.steps if result else 0,
        "seconds": round(fitted.seconds, 3),
        "stopped": result.stopped if result else None,
        "threads": result.threads if result else None,
        "initial_nll": result.initial_validation if result else None,
        "best_step": result.best_step if result else None,
        "validation_nll": found,
        "validation_samples": flow.validation_samples if flow else 0,
        "curve": curve(folder) if result else [],
        "model": to_json(config),
        "training": to_json(training) if training else None,
    }


def _of_evaluation(result: Evaluation) -> dict[str, Any]:
    said = asdict(result)
    return {"test_rows": said.pop("rows"), "evaluation_seconds": round(said.pop("seconds"), 1), **said}
