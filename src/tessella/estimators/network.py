"""The flow behind an estimator: how it is built and how it is trained."""

import copy
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from tessella.densities import Gaussian, conditional_flow, token_flow
from tessella.dequantizers.cells import VoronoiCells
from tessella.dequantizers.mixed import MixedContext, MixedDequantizer, MixedNoise
from tessella.estimators.encoding import Encoding
from tessella.models import SemiDiscrete
from tessella.training import FitResult, NonFiniteError, RunFolder, TrainingConfig
from tessella.training import fit as train
from tessella.training.randomness import derived_seed, seed_noise, undisturbed_noise

CONTEXT = 32
NOISE_BLOCKS = 2
BOX = 3.0  # half-width of the box around the cells: with noise from a ball they are filled evenly
TRAIN_SAMPLES = 4  # with the plain bound, 1, even two coins that fall alike are learned as independent
TRIAL_STEPS = 5
BUDGET_FOR_STEPS = 0.85  # of the time budget; the rest goes to validation and to starting up
STEPS = 6000  # where there is no budget
VALIDATIONS = 20
VALIDATION_ROWS, VALIDATION_SAMPLES = 1000, 4
PATIENCE = 8


@dataclass(frozen=True)
class Size:
    """What decides how large a model is."""

    dim: int
    blocks: int
    width: int

    def __post_init__(self) -> None:
        for name, least in {"dim": 2, "blocks": 1, "width": 1}.items():
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
    counts, numbers = encoding.counts, len(encoding.numbers)
    event = (len(counts) + numbers, size.dim)
    with single_precision():
        cells = VoronoiCells(counts, size.dim, box=BOX)
        base = MixedNoise(len(counts), numbers, size.dim)
        noise = conditional_flow(base, NOISE_BLOCKS, size.width, 1, CONTEXT, tokens=True)
        context = MixedContext(counts, numbers, CONTEXT, size.width)
        dequantizer = MixedDequantizer(cells, noise, context, encoding.unit, encoding.indicators)
        density = token_flow(Gaussian(event), size.blocks, size.width, 1)
    return SemiDiscrete(dequantizer, density, TRAIN_SAMPLES, VALIDATION_SAMPLES)


def learn(
    encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan
) -> tuple[SemiDiscrete, FitResult, list[dict[str, Any]]]:
    """Build, arrange and train on (training, validation) rows; the model, how it went, and its curve."""
    with single_precision(), undisturbed_noise(torch.device("cpu")):
        torch.manual_seed(derived_seed(plan.seed, "model"))
        model = build(encoding, size)
        assert isinstance(model.dequantizer, MixedDequantizer)
        # Maps and anchors look at all rows: a number that is only among the validation rows has a place, too.
        model.dequantizer.arrange(torch.cat(rows), encoding.ordinal)
        config = _config(model, rows[0], plan)
        with tempfile.TemporaryDirectory(prefix="tessella-") as folder:
            result = _trained(model, rows, config, folder)
            history = RunFolder(folder).read_metrics()
    return model, result, history


def _trained(model: SemiDiscrete, rows: tuple[Tensor, Tensor], config: TrainingConfig, folder: str) -> FitResult:
    try:
        return train(model, *rows, config, folder)
    except NonFiniteError as error:  # its checkpoint is in a folder that is about to go
        raise ArithmeticError(
            f"step {error.step}: the loss or its gradient is not finite; try a smaller learning_rate than "
            f"{config.learning_rate}, or look for extreme numbers in the table"
        ) from None


def _config(model: SemiDiscrete, rows: Tensor, plan: Plan) -> TrainingConfig:
    """The schedule ends when the budget does: steps are timed first, and as many planned as the budget has room for."""
    config = TrainingConfig(
        batch_size=plan.batch_size,
        learning_rate=plan.learning_rate,
        patience=PATIENCE,
        validation_rows=VALIDATION_ROWS,
        time_budget=plan.time_budget,
        seed=plan.seed,
        accelerator=plan.device,
        progress=plan.progress,
    )
    steps = STEPS if plan.max_steps is None else plan.max_steps
    if plan.time_budget is not None:
        affordable = int(BUDGET_FOR_STEPS * plan.time_budget / _seconds_per_step(model, rows, config))
        steps = max(1, affordable if plan.max_steps is None else min(steps, affordable))
    every = max(1, steps // VALIDATIONS)
    warmup = min(config.warmup_steps, steps // 10)
    return replace(config, steps=steps, warmup_steps=warmup, validate_every=every, checkpoint_every=steps)


def _seconds_per_step(model: SemiDiscrete, rows: Tensor, config: TrainingConfig) -> float:
    """Time of a forward and a backward pass of a copy of the model; the first one, which warms up, is not counted."""
    device = torch.device("cpu" if config.accelerator == "cpu" or not torch.cuda.is_available() else "cuda")
    trial, batch = copy.deepcopy(model).to(device), rows[: config.batch_size].to(device)
    trial.initialize(batch)
    start = 0.0
    for step in range(1 + TRIAL_STEPS):
        start = time.perf_counter() if step == 1 else start
        trial.loss(batch).backward()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / TRIAL_STEPS


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
