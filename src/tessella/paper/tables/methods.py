"""The methods of Table 1, each fitted to the same table in its own way: what comes back looks the same for all."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from tessella.baselines import (
    Baseline,
    BlockAutoregressiveMixture,
    CategoricalMixture,
    CausalTransformer,
    ChowLiu,
    DiscreteFlow,
    Independent,
)
from tessella.data import Rows, Table
from tessella.models import SemiDiscrete, SemiDiscreteConfig, build
from tessella.paper.effort import curve, scheduled
from tessella.runs.run import DataConfig, RunConfig, train_run
from tessella.training import FitResult, Trainable, TrainingConfig, fit
from tessella.training.pace import Pace


@dataclass(frozen=True)
class TransformerConfig:
    """`CausalTransformer`."""

    width: int = 256
    layers: int = 6
    dropout: float = 0.1


@dataclass(frozen=True)
class BlocksConfig:
    """`BlockAutoregressiveMixture`."""

    groups: int = 8
    components: int = 16
    width: int = 256
    layers: int = 4
    dropout: float = 0.0
    nets: Literal["plain", "fast"] = "fast"


@dataclass(frozen=True)
class DiscreteFlowConfig:
    """`DiscreteFlow`."""

    layers: int = 8
    width: int = 512
    temperature: float = 2.0


@dataclass(frozen=True)
class MixtureConfig:
    """`CategoricalMixture`: the validation rows choose among these numbers of components."""

    components: tuple[int, ...] = (50, 100, 200)
    iterations: int = 500


@dataclass(frozen=True)
class CountingConfig:
    """`Independent` or `ChowLiu`, as they come: nothing to choose."""

    structure: Literal["independent", "tree"] = "independent"


ModelConfig = (
    SemiDiscreteConfig | TransformerConfig | BlocksConfig | DiscreteFlowConfig | MixtureConfig | CountingConfig
)
Network = SemiDiscrete | CausalTransformer | BlockAutoregressiveMixture | DiscreteFlow


@dataclass(frozen=True)
class Recipe:
    """What is chosen about a method for a table; methods that count have no use for the training."""

    model: ModelConfig
    training: TrainingConfig = field(default_factory=TrainingConfig)


@dataclass(frozen=True)
class Job:
    """A method to be fitted to a table. Of `steps` and `minutes` the first counts; with neither, the recipe's steps."""

    data: DataConfig
    table: Table
    preset: str
    recipe: Recipe
    folder: Path
    minutes: float = 0.0
    steps: int = 0


@dataclass(frozen=True)
class Fitted:
    """A model with its best weights, in evaluation mode, and what it took; seconds without the final evaluation."""

    model: SemiDiscrete | Baseline
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
    return FITS[type(job.recipe.model)](job)


def build_network(config: ModelConfig, counts: Sequence[int]) -> Network:
    """The untrained model of a method that is trained."""
    if isinstance(config, SemiDiscreteConfig):
        return build(config, counts)
    if isinstance(config, TransformerConfig):
        return CausalTransformer(counts, config.width, config.layers, config.dropout)
    if isinstance(config, BlocksConfig):
        size = (config.groups, config.components, config.width, config.layers)
        return BlockAutoregressiveMixture(counts, *size, config.dropout, config.nets == "fast")
    assert isinstance(config, DiscreteFlowConfig)
    return DiscreteFlow(counts, config.layers, config.width, config.temperature)


def passes(method: str, model: Mapping[str, Any], variables: int) -> int:
    """How many networks are asked one after another, each with the answers of those before, to draw a row."""
    if method in ("voronoi", "simplex", "binary-argmax"):
        return int(model["blocks"])
    if method == "blocks":
        return min(int(model["groups"]), variables)
    return {"transformer": variables, "discrete-flow": model.get("layers", 1)}.get(method, 1)


def _fit_semidiscrete(job: Job) -> Fitted:
    assert isinstance(job.recipe.model, SemiDiscreteConfig)
    training, pace = _schedule(job)
    run, result = train_run(RunConfig(job.data, job.recipe.model, training, job.preset), job.folder, pace)
    return _from_folder(run.model, job, training, result)


def _fit_baseline(job: Job) -> Fitted:
    training, pace = _schedule(job)
    torch.manual_seed(training.seed)
    model = build_network(job.recipe.model, job.table.schema.counts)
    about = {"preset": job.preset, "data": asdict(job.data), "model": asdict(job.recipe.model)}
    result = fit(model, Rows(job.table.train), Rows(job.table.validation), training, job.folder, about, pace=pace)
    return _from_folder(model, job, training, result)


def _from_folder(model: SemiDiscrete | Baseline, job: Job, training: TrainingConfig, result: FitResult) -> Fitted:
    return Fitted(
        model=model,
        recipe=replace(job.recipe, training=training),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        steps=result.steps,
        seconds=result.seconds,
        stopped=result.stopped,
        validation_nll=result.best_validation,
        initial_nll=result.initial_validation,
        best_step=result.best_step,
        threads=result.threads,
        curve=curve(job.folder),
    )


def _schedule(job: Job) -> tuple[TrainingConfig, Pace | None]:
    def untrained() -> Trainable:
        return build_network(job.recipe.model, job.table.schema.counts)

    rows = (Rows(job.table.train), Rows(job.table.validation))
    return scheduled(job.recipe.training, job.minutes, job.steps, job.folder, untrained, rows)


def _fit_counting(job: Job) -> Fitted:
    config, counts = job.recipe.model, job.table.schema.counts
    assert isinstance(config, CountingConfig)
    train = job.table.train.to(_counting_device(job))
    start = time.perf_counter()
    if config.structure == "tree":
        tree = ChowLiu(counts).to(train.device).fit(train)
        sizes = ((counts[parent] if parent >= 0 else 1) for parent in tree.parent.tolist())
        free = sum(size * (count - 1) for size, count in zip(sizes, counts, strict=True))
        return _counted(tree, job, free, 1, start)
    return _counted(Independent(counts).to(train.device).fit(train), job, sum(counts) - len(counts), 1, start)


def _fit_mixture(job: Job) -> Fitted:
    """Each number of components in turn, with an even share of the budget where there is one."""
    config, counts, device = job.recipe.model, job.table.schema.counts, _counting_device(job)
    assert isinstance(config, MixtureConfig)
    train, validation = job.table.train.to(device), job.table.validation.to(device)
    start, tried = time.perf_counter(), []
    for components in config.components:
        model = _CountedMixture(counts, components).to(device)
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
    validation = float(model.nll(job.table.validation.to(model.count.device)).mean())
    curve = [[round(seconds, 3), validation]]
    return Fitted(model, job.recipe, parameters, steps, seconds, "steps", validation, None, None, None, curve)


def _counting_device(job: Job) -> str:
    """Counting is quick: on the CPU, unless the GPU is asked for by name."""
    return "cuda" if job.recipe.training.accelerator == "cuda" else "cpu"


FITS: dict[type, Callable[[Job], Fitted]] = {
    SemiDiscreteConfig: _fit_semidiscrete,
    TransformerConfig: _fit_baseline,
    BlocksConfig: _fit_baseline,
    DiscreteFlowConfig: _fit_baseline,
    MixtureConfig: _fit_mixture,
    CountingConfig: _fit_counting,
}
