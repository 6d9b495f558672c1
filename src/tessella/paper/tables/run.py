"""Table 1 of the paper: every method on the same rows, under the same evaluation, as one JSON record.

tessella reproduce tables --data mushroom --method voronoi --minutes 5
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from tessella import records
from tessella.configs import changed, to_json
from tessella.contracts import Batch, Bound
from tessella.data import load_table
from tessella.evaluation import Evaluation, entropy_floor_audit, evaluate, sandwich_audit, sum_to_one_audit
from tessella.models import FlowConfig, SemiDiscrete, TableModel, log_mean_exp
from tessella.paper.effort import Effort, matmul_precision
from tessella.paper.tables.methods import COUNTED, Fitted, Job, fit_method
from tessella.paper.tables.recipes import Method, Preset, Recipe, recipe_for
from tessella.runs import DataConfig
from tessella.training.randomness import derived_seed

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
    """Fields of the recipe to change, {"model.cells.dim": 2}."""

    @property
    def name(self) -> str:
        """What the record's file is called."""
        parts = [self.data.name, "simulated" if self.data.simulated else "", self.method]
        return "-".join(filter(None, [*parts, self.preset if self.preset != "best" else "", f"seed{self.seed}"]))


def recipe_of(task: TableTask) -> Recipe:
    """The preset's recipe for the table, with what the task asks for."""
    if planned := sorted(PLANNED & set(task.changes)):
        raise ValueError(
            f"set: got {', '.join(planned)}; expected other fields, these follow from --steps or --minutes"
        )
    recipe = recipe_for(task.data.name, task.method, task.preset)
    return changed(replace(recipe, training=task.applied(recipe.training)), task.changes)


def run_table(task: TableTask, folder: Path) -> dict[str, Any]:
    """Fit, evaluate, audit; the record. A value below the floor by more than three standard errors is an error."""
    table = load_table(task.data.name, simulated=task.data.simulated, joined=task.data.joined)
    job = Job(task.data, table, task.preset, recipe_of(task), folder, task.minutes, task.steps)
    with matmul_precision(task.precision):
        fitted = fit_method(job)
    with matmul_precision("highest"):
        torch.manual_seed(derived_seed(task.seed, "test"))
        rows = table.test.to(_device(fitted.model)).batch(torch.arange(min(task.test_rows, len(table.test))))
        result = evaluate(fitted.model, rows, task.samples, table.entropy_floor)
        few = tuple(part[:IW_CURVE_ROWS] for part in rows)
        iw_curve = importance_curve(fitted.model, few, 3 * task.samples)
        sandwich = sandwich_audit(fitted.model, samples=task.samples)
        mass = sum_to_one_audit(fitted.model, table.encoding.counts, task.samples)
    audit = entropy_floor_audit(result)
    if audit is not None and not audit.passed:
        raise ArithmeticError(f"{task.name}: the value cannot be true: {audit.message}")
    return {
        "data": table.name,
        "simulated": task.data.simulated,
        "partial": table.partial,
        "method": task.method,
        "preset": task.preset,
        **_of_fit(fitted),
        "exact": fitted.model.exact,
        **_of_evaluation(result),
        "test_rows_available": len(table.test),
        "iw_curve": iw_curve,
        "sandwich": asdict(sandwich),
        "sum_to_one": None if mass is None else asdict(mass),
        "matmul_precision": {"training": task.precision, "evaluation": "highest"},
        **records.provenance(task.seed),
    }


@torch.no_grad()
def importance_curve(model: TableModel, batch: Batch, most: int) -> list[list[float]]:
    """[S, bound with S importance samples] for S up to `most`, all from the same weights; empty for exact values."""
    counts = [count for count in IW_CURVE_SAMPLES if count <= most]
    if not isinstance(model, Bound):
        return []
    weights = torch.cat(model.chunked_log_weights(*batch, samples=max(counts)), 1).double()  # (S, B)
    curve = []
    for count in counts:
        groups = weights[: len(weights) // count * count].view(-1, count, weights.shape[1])
        curve.append([count, -float(log_mean_exp(groups.transpose(0, 1)).mean())])
    return curve


def _device(model: TableModel) -> torch.device:
    return next(model.buffers()).device


def _of_fit(fitted: Fitted) -> dict[str, Any]:
    model, trained = fitted.recipe.model, type(fitted.recipe.model) not in COUNTED
    return {
        "density": model.density.kind if isinstance(model, FlowConfig) else None,
        "parameters": fitted.parameters,
        "steps": fitted.steps,
        "seconds": round(fitted.seconds, 3),
        "stopped": fitted.stopped,
        "threads": fitted.threads,
        "initial_nll": fitted.initial_nll,
        "best_step": fitted.best_step,
        "validation_nll": fitted.validation_nll,
        "validation_samples": fitted.model.validation_samples if isinstance(fitted.model, SemiDiscrete) else 0,
        "curve": fitted.curve,
        "model": to_json(model),
        "training": to_json(fitted.recipe.training) if trained else None,
    }


def _of_evaluation(result: Evaluation) -> dict[str, Any]:
    said = asdict(result)
    return {"test_rows": said.pop("rows"), "evaluation_seconds": round(said.pop("seconds"), 1), **said}
