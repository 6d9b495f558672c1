"""A training script as a user writes it: `python two_processes.py FOLDER DEVICES`. It runs once for each device."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from tests.training.small_models import Gaussian, gaussian_source
from torch import Tensor

from tessella.training import TrainingConfig, fit

SHARED = TrainingConfig(
    steps=60,
    batch_size=16,
    learning_rate=0.05,
    warmup_steps=5,
    ema_decay=0.9,
    validate_every=20,
    log_every=5,
    accelerator="cpu",
    progress=False,
)


class Interrupted(Gaussian):
    """Presses Ctrl-C, in the first process only, during its 31st step."""

    steps = 0

    def loss(self, batch: Tensor) -> Tensor:
        self.steps += 1
        if self.steps == 31 and os.environ.get("LOCAL_RANK", "0") == "0":
            os.kill(os.getpid(), signal.SIGINT)
        return super().loss(batch)


def train(folder: Path, devices: int) -> None:
    """Train, be interrupted, resume, and ask once more."""
    config = replace(SHARED, devices=devices)
    results = [
        fit(model, gaussian_source(), gaussian_source(50), config, folder)
        for model in (Interrupted(), Gaussian(), Gaussian())
    ]
    assert (results[0].stopped, results[0].steps) == ("interrupted", 31)
    assert results[1].stopped == "steps"
    assert results[1] == results[2]


if __name__ == "__main__":
    train(Path(sys.argv[1]), int(sys.argv[2]))
    print("satisfied")
