"""The methods of Table 1, each fitted to the same table in its own way: what comes back looks the same for all."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from tessella.baselines import Baseline, CategoricalMixture, ChowLiu, Independent
from tessella.data import Table
from tessella.models import CategoricalMixtureConfig, ChowLiuConfig, IndependentConfig, TableConfig, TableModel
from tessella.models.tables import number_of_parameters
from tessella.paper.effort import VALIDATIONS, curve
from tessella.paper.tables.recipes import Recipe
from tessella.runs import DataConfig, RunConfig, train_run


@dataclass(frozen=True)
class Job:
    """A method to be fitted to a table."""

    data: DataConfig
    table: Table
    preset: str
    recipe: Recipe
    folder: Path
    minutes: float = 0.0
    """Of methods that count; 0: no limit. Networks have theirs in the recipe."""
    steps: int = 0
    """Iterations of the mixture instead."""


@dataclass(frozen=True)
class Fitted:
    """A model with its best weights, in evaluation mode, and what it took; seconds without the final evaluation."""

    model: TableModel
    recipe: Recipe
    """What was used in the end, with the steps that were planned."""
    parameters: int
    """Numbers that were trained; probabilities that were free, where they come from counting."""
    steps: int
    """Updates, or iterations of the mixture."""
    seconds: float
    stopped: str
    validation_nll: float
    initial_nll: float | None
    """The same before the first update; None where nothing is trained."""
    best_step: int | None
    """After which the weights were taken: 0 where learning added nothing to the start."""
    threads: int | None
    """Of training, 0 on a GPU; None where nothing is trained."""
    curve: list[list[float]]
    """[seconds, validation_nll], thinned."""


def fit_method(job: Job) -> Fitted:
    """Fit what the recipe describes; networks leave their run folder, and continue where it stopped."""
    return COUNTED.get(type(job.recipe.model), _fit_network)(job)


def passes(method: str, model: Mapping[str, Any], variables: int) -> int:
    """How many networks are asked one after another, each with the answers of those before, to draw a row."""
    if method in ("voronoi", "simplex", "binary-argmax"):
        return _couplings(model.get("density", model), variables)
    if method == "blocks":
        return min(int(model["groups"]), variables)
    if method in ("transformer", "autoregressive", "backoff"):
        return variables
    return int(model.get("layers", 1)) if method == "discrete-flow" else 1


def _couplings(flow: Mapping[str, Any], variables: int) -> int:
    """Of groups of variables that know cells, or of half of the coordinates of each group, or of all variables."""
    if "further" in flow:
        return (1 + 2 * int(flow["further"])) * min(int(flow["groups"]), variables)
    if "sweeps" in flow:
        return 2 * int(flow["sweeps"]) * min(int(flow["groups"]), variables)
    return int(flow["blocks"])


def _fit_network(job: Job) -> Fitted:
    config = RunConfig(job.data, job.recipe.model, job.recipe.training, job.preset)
    run, result = train_run(config, job.table, job.folder, VALIDATIONS)
    return Fitted(
        model=run.model,
        recipe=Recipe(run.config.model, run.config.training),
        parameters=number_of_parameters(run.model),
        steps=result.steps,
        seconds=result.seconds,
        stopped=result.stopped,
        validation_nll=result.best_validation,
        initial_nll=result.initial_validation,
        best_step=result.best_step,
        threads=result.threads,
        curve=curve(job.folder),
    )


def _codes(job: Job) -> tuple[Tensor, Tensor]:
    """Of training and validation rows. Counting is quick: on the CPU, unless the GPU is asked for by name."""
    device = "cuda" if job.recipe.training.accelerator == "cuda" else "cpu"
    return job.table.train.to(device).tensors[0], job.table.validation.to(device).tensors[0]


def _fit_independent(job: Job) -> Fitted:
    counts, (train, _), start = job.table.encoding.counts, _codes(job), time.perf_counter()
    model = Independent(counts).to(train.device).fit(train)
    return _counted(model, job, sum(counts) - len(counts), 1, start)


def _fit_tree(job: Job) -> Fitted:
    counts, (train, _), start = job.table.encoding.counts, _codes(job), time.perf_counter()
    tree = ChowLiu(counts).to(train.device).fit(train)
    sizes = ((counts[parent] if parent >= 0 else 1) for parent in tree.parent.tolist())
    free = sum(size * (count - 1) for size, count in zip(sizes, counts, strict=True))
    return _counted(tree, job, free, 1, start)


def _fit_mixture(job: Job) -> Fitted:
    """Each number of components in turn, with an even share of the budget where there is one."""
    config, counts, (train, validation) = job.recipe.model, job.table.encoding.counts, _codes(job)
    assert isinstance(config, CategoricalMixtureConfig)
    start, tried = time.perf_counter(), []
    for components in config.components:
        model = _CountedMixture(counts, components).to(train.device)
        limit = job.steps or config.iterations
        if job.minutes:
            limit = min(limit, model.iterations_within(60 * job.minutes / len(config.components), train))
        model.fit(train, validation, iterations=limit, seed=job.recipe.training.seed)
        tried.append((float(model.nll(validation).mean()), limit, model))
    _, limit, best = min(tried, key=lambda one: one[0])
    free = best.components * (sum(counts) - len(counts) + 1) - 1
    chosen = replace(config, components=(best.components,), iterations=limit)
    fitted = _counted(best, replace(job, recipe=replace(job.recipe, model=chosen)), free, best.done, start)
    return replace(fitted, stopped="patience" if best.done < limit else "steps")


class _CountedMixture(CategoricalMixture):
    """A mixture that knows how many iterations it has done."""

    done = 0

    def start(self, codes: Tensor, seed: int = 0) -> None:
        self.done = 0
        super().start(codes, seed)

    def improve(self, codes: Tensor, smoothing: float) -> float:
        self.done += 1
        return super().improve(codes, smoothing)

    def iterations_within(self, seconds: float, codes: Tensor) -> int:
        """Timed with one; a fifth of each goes to the validation and what surrounds it."""
        self.start(codes)
        start = time.perf_counter()
        self.improve(codes, smoothing=1.0)
        return max(1, int(seconds / (1.2 * (time.perf_counter() - start))) - 1)


def _counted(model: Baseline, job: Job, parameters: int, steps: int, start: float) -> Fitted:
    seconds = time.perf_counter() - start
    validation = float(model.nll(_codes(job)[1]).mean())
    curve = [[round(seconds, 3), validation]]
    return Fitted(model, job.recipe, parameters, steps, seconds, "steps", validation, None, None, None, curve)


COUNTED: dict[type[TableConfig], Callable[[Job], Fitted]] = {
    IndependentConfig: _fit_independent,
    ChowLiuConfig: _fit_tree,
    CategoricalMixtureConfig: _fit_mixture,
}
"""Methods that count; all others are networks."""
