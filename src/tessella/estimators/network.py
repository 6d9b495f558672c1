"""The flow behind an estimator: how it is built and how it is trained."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from tessella.densities import Flow, Gaussian, LatentClasses, conditional_flow, token_flow
from tessella.dequantizers.cells import VoronoiCells
from tessella.dequantizers.mixed import MixedContext, MixedDequantizer
from tessella.dequantizers.modes import mode_counts, modes_of
from tessella.estimators.classes import fit_classes
from tessella.estimators.encoding import Encoding
from tessella.models import SemiDiscrete
from tessella.training import FitResult, NonFiniteError, RunFolder, TrainingConfig
from tessella.training import fit as train
from tessella.training.pace import measure_pace
from tessella.training.randomness import derived_seed, seed_noise, undisturbed_noise

CONTEXT = 32
NOISE_BLOCKS = 2
TRAIN_SAMPLES = 4
SHARE_FOR_CLASSES = 0.2  # of the time budget
STEPS = 3000  # where there is no budget
VALIDATIONS = 20
VALIDATION_ROWS, VALIDATION_SAMPLES = 1000, 4
PATIENCE = 8


@dataclass(frozen=True)
class Size:
    """What decides how large a model is; its number of latent classes may be left to the validation rows (0)."""

    dim: int
    blocks: int
    width: int
    classes: int = 0

    def __post_init__(self) -> None:
        for name, least in {"dim": 2, "blocks": 1, "width": 1, "classes": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: got {getattr(self, name)}; expected at least {least}")


@dataclass(frozen=True)
class Plan:
    """What decides how a model is trained."""

    seed: int
    device: Literal["auto", "cpu", "cuda"]
    max_steps: int | None
    time_budget: float | None
    learning_rate: float
    batch_size: int
    progress: bool


def build(encoding: Encoding, size: Size) -> SemiDiscrete:
    """The model of an encoding, in single precision whatever torch's default is."""
    with single_precision():
        dequantizer = _dequantizer(encoding, size)
        modes = mode_counts(encoding.counts, len(encoding.numbers))
        base = LatentClasses(modes, size.dim, size.classes)
        density = token_flow(base, size.blocks, size.width, 1, norm=False)
    return SemiDiscrete(dequantizer, density, TRAIN_SAMPLES, VALIDATION_SAMPLES)


def _dequantizer(encoding: Encoding, size: Size) -> MixedDequantizer:
    counts, numbers = encoding.counts, len(encoding.numbers)
    cells = VoronoiCells(counts, size.dim, squashing="root")  # which leaves the middle of a cell as it is
    base = Gaussian((len(counts) + numbers, size.dim))
    noise = conditional_flow(base, NOISE_BLOCKS, size.width, 1, CONTEXT, tokens=True)
    context = MixedContext(counts, numbers, CONTEXT, size.width)
    return MixedDequantizer(cells, noise, context, encoding.unit, encoding.indicators)


def learn(
    encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan
) -> tuple[SemiDiscrete, FitResult, list[dict[str, Any]]]:
    """Build, start and train on (training, validation) rows; the model, how it went, and its curve."""
    started = time.perf_counter()
    with single_precision(), undisturbed_noise(torch.device("cpu")):
        torch.manual_seed(derived_seed(plan.seed, "model"))
        model = _started(encoding, size, rows, plan)
        config = _config(model, rows, plan, time.perf_counter() - started)
        with tempfile.TemporaryDirectory(prefix="tessella-") as folder:
            result = _trained(model, rows, config, folder)
            history = RunFolder(folder).read_metrics()
    return model, result, history


def _started(encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan) -> SemiDiscrete:
    """A model that already is a mixture of latent classes: cells apart, narrow noise, a mode of the base in each."""
    arranged = _dequantizer(encoding, size)
    arranged.arrange(rows[0], encoding.ordinal)
    assert isinstance(arranged.cells, VoronoiCells)
    modes = modes_of(arranged.cells, rows[0][:, : len(encoding.counts)].long(), len(encoding.numbers))
    found, watched = (arranged.modes_of_rows(modes, part) for part in rows)
    budget = None if plan.time_budget is None else SHARE_FOR_CLASSES * plan.time_budget
    classes = fit_classes(modes.counts, found, watched, size.classes, budget, plan.seed, plan.progress)
    model = build(encoding, replace(size, classes=len(classes.log_weight)))
    model.dequantizer.load_state_dict(arranged.state_dict())
    latent_classes(model).start(classes.log_weight, classes.log_table, modes.centre, modes.scale)
    return model


def latent_classes(model: SemiDiscrete) -> LatentClasses:
    """The base of a model that `build` made."""
    assert isinstance(model.density, Flow)
    assert isinstance(model.density.base, LatentClasses)
    return model.density.base


def _trained(model: SemiDiscrete, rows: tuple[Tensor, Tensor], config: TrainingConfig, folder: str) -> FitResult:
    try:
        return train(model, *rows, config, folder)
    except NonFiniteError as error:  # its checkpoint is in a folder that is about to go
        raise ArithmeticError(
            f"step {error.step}: the loss or its gradient is not finite; try a smaller learning_rate than "
            f"{config.learning_rate}, or look for extreme numbers in the table"
        ) from None


def _config(model: SemiDiscrete, rows: tuple[Tensor, Tensor], plan: Plan, spent: float) -> TrainingConfig:
    """The schedule ends when the budget does: steps are timed first, and as many planned as the budget has room for."""
    config = TrainingConfig(
        batch_size=plan.batch_size,
        learning_rate=plan.learning_rate,
        patience=PATIENCE,
        validation_rows=VALIDATION_ROWS,
        seed=plan.seed,
        accelerator=plan.device,
        progress=plan.progress,
    )
    steps = STEPS if plan.max_steps is None else plan.max_steps
    if plan.time_budget is not None:
        left = max(plan.time_budget - spent, 1e-3)
        affordable = measure_pace(model, *rows, config).steps_within(left, VALIDATIONS)
        steps = affordable if plan.max_steps is None else min(steps, affordable)
        config = replace(config, time_budget=left)
    every = max(1, steps // VALIDATIONS)
    warmup = min(config.warmup_steps, steps // 10)
    return replace(config, steps=steps, warmup_steps=warmup, validate_every=every, checkpoint_every=steps)


@torch.no_grad()
def log_likelihood(model: SemiDiscrete, rows: Tensor, samples: int, seed: int) -> Tensor:
    """The importance-weighted bound of every row in nats, (B) on the CPU; the same noise every time."""
    with undisturbed_noise(model.device):
        seed_noise(derived_seed(seed, "score"), model.device)
        bound = model.log_prob(rows.to(model.device), samples).double().cpu()
    bad = (~bound.isfinite()).nonzero().flatten().tolist()
    if bad:
        raise ArithmeticError(f"log-likelihood: {len(bad)} of {len(rows)} rows are not finite (first: rows {bad[:5]})")
    return bound


@contextmanager
def single_precision() -> Iterator[None]:
    """New parameters are float32 inside."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
