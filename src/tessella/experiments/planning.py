"""What all measured runs share: how long they train, and the curve they leave."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tessella.contracts import Source
from tessella.training import RunFolder, Trainable, TrainingConfig
from tessella.training.config import Accelerator
from tessella.training.pace import measure_pace

VALIDATIONS = 25  # of a run: as many points on its curve
CURVE_POINTS = 60


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to train, on what. Of `steps` and `minutes` the first counts; with neither, the recipe's steps."""

    minutes: float = 0.0
    """Training time that the steps are planned for."""
    steps: int = 0
    """Steps instead; of the mixture of categoricals, iterations."""
    seed: int = 0
    """Of initialisation and batches."""
    accelerator: Accelerator = "auto"
    tf32: bool = True
    """Products of matrices in TF32 while training on a GPU, never in evaluation; `fast` networks keep bfloat16."""
    progress: bool = True
    threads: int | None = None
    """On a CPU; None = as many as a trial finds fastest."""

    def applied(self, training: TrainingConfig) -> TrainingConfig:
        """A recipe's training with this seed, on this device."""
        training = replace(training, seed=self.seed, accelerator=self.accelerator)
        return replace(training, progress=self.progress, threads=self.threads)

    @property
    def precision(self) -> str:
        """Of products of matrices while training, as torch calls it."""
        return "high" if self.tf32 and self.accelerator != "cpu" and torch.cuda.is_available() else "highest"


def scheduled(
    training: TrainingConfig,
    minutes: float,
    steps: int,
    folder: Path,
    make: Callable[[], Trainable],
    rows: tuple[Source, Source],
) -> TrainingConfig:
    """The training with its steps, validations and warm-up fixed; a budget's steps are timed first.

    Args:
        training: of the recipe.
        minutes, steps: see `Effort`.
        folder: of the run; one that had the same budget keeps its steps, as timing again would plan another run.
        make: an untrained model to time.
        rows: for training and validation.
    """
    planned = steps or training.steps
    if minutes and not steps:
        training = replace(training, time_budget=60 * minutes)
        planned = _planned_before(training, folder) or _that_fit(training, 60 * minutes, make, rows)
    return replace(
        training,
        steps=planned,
        warmup_steps=min(training.warmup_steps, planned // 10),
        validate_every=-(-planned // VALIDATIONS),
        checkpoint_every=planned,
    )


def _that_fit(
    training: TrainingConfig, seconds: float, make: Callable[[], Trainable], rows: tuple[Source, Source]
) -> int:
    torch.manual_seed(training.seed)
    return measure_pace(make(), *rows, training).steps_within(seconds, VALIDATIONS + 2)


def _planned_before(training: TrainingConfig, folder: Path) -> int:
    """Steps of the run in the folder, if it had the same budget; 0 for a new folder."""
    path = RunFolder(folder).config
    there: dict[str, Any] = json.loads(path.read_text())["training"] if path.exists() else {}
    return int(there["steps"]) if there.get("time_budget") == training.time_budget else 0


def curve(folder: Path) -> list[list[float]]:
    """[seconds, validation value] of a run, thinned."""
    validated = [row for row in RunFolder(folder).read_metrics() if row.get("validation") is not None]
    return [[row["seconds"], row["validation"]] for row in validated[:: 1 + len(validated) // CURVE_POINTS]]


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """torch.set_float32_matmul_precision inside, what it was before outside."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
