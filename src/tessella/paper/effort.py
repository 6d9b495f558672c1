"""What all measured runs share: how long they train, and the curve they leave."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tessella.training import RunFolder, TrainingConfig
from tessella.training.config import Accelerator

VALIDATIONS = 25  # of a run: as many points on its curve
CURVE_POINTS = 60


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to train, on what. Of `steps` and `minutes` the first counts; with neither, the recipe's steps."""

    minutes: float = 0.0
    """Train for about so long: steps are timed first, and as many planned as fit. 0 for the preset's steps."""
    steps: int = 0
    """Train for exactly so many steps instead; of the mixture of categoricals, iterations."""
    seed: int = 0
    """Of initialisation, batches, noise and importance samples."""
    accelerator: Accelerator = "auto"
    """Where to train and evaluate; methods that count use the CPU unless cuda is asked for."""
    tf32: bool = True
    """Products of matrices in TF32 while training on a GPU, never in evaluation; `fast` networks keep bfloat16."""
    progress: bool = True
    """Show a progress bar."""
    threads: int | None = None
    """On a CPU; None = as many as a trial finds fastest."""

    def applied(self, training: TrainingConfig) -> TrainingConfig:
        """A recipe's training for so long, with this seed, on this device."""
        if self.steps:
            training = replace(training, steps=self.steps)
        elif self.minutes:
            training = replace(training, time_budget=60 * self.minutes)
        training = replace(training, seed=self.seed, accelerator=self.accelerator)
        return replace(training, progress=self.progress, threads=self.threads)

    @property
    def precision(self) -> str:
        """Of products of matrices while training, as torch calls it."""
        return "high" if self.tf32 and self.accelerator != "cpu" and torch.cuda.is_available() else "highest"


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
