"""What all measured runs share: how long they train, and the curve they leave."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tessella.contracts import Source
from tessella.training import RunFolder, Trainable, TrainingConfig
from tessella.training.budget import within_budget
from tessella.training.config import Accelerator
from tessella.training.pace import Pace

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
) -> tuple[TrainingConfig, Pace | None]:
    """The training with its steps, validations and warm-up fixed, and its pace where a budget's steps were timed.

    Args:
        training: of the recipe.
        minutes, steps: see `Effort`.
        folder: of the run; one that had the same budget keeps its steps.
        make: an untrained model to time.
        rows: for training and validation.
    """

    def seeded() -> Trainable:
        torch.manual_seed(training.seed)
        return make()

    asked = replace(training, steps=steps or training.steps)
    if minutes and not steps:
        asked = replace(asked, time_budget=60 * minutes)
    return within_budget(asked, seeded, *rows, validations=VALIDATIONS, folder=folder)


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
