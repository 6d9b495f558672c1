"""How many updates a time budget has room for: the learning rate follows the steps, so they are counted beforehand."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.training.batches import Batches
from tessella.training.config import TrainingConfig
from tessella.training.contract import Trainable
from tessella.training.fitting import _accelerator
from tessella.training.learner import Learner
from tessella.training.processes import Processes
from tessella.training.randomness import undisturbed_noise
from tessella.training.validation import validation_subset

WARMUP = 5  # updates that are not counted: libraries warm up, and on a GPU the step is captured
TRIALS = {"cpu": 5, "cuda": 40}
ROOM = 0.93  # of a budget; the rest is for starting up and for what the trial did not foresee


@dataclass(frozen=True)
class Pace:
    """Seconds that one update takes, and one validation."""

    update: float
    validation: float

    def steps_within(self, seconds: float, validations: int) -> int:
        """Updates that fit into a budget together with so many validations; at least 1.

        >>> Pace(update=0.1, validation=1.0).steps_within(100.0, validations=3)
        900
        """
        return max(1, int((ROOM * seconds - validations * self.validation) / self.update))


def measure_pace(model: Trainable, train: Tensor, validation: Tensor, config: TrainingConfig) -> Pace:
    """Train a copy of the model for a moment, exactly as `fit` would on one device; model and noise are left alone."""
    assert isinstance(model, nn.Module)
    config = replace(config, accelerator=_accelerator(config), devices=1)
    processes = Processes(config)
    trials = TRIALS[processes.device.type]
    with undisturbed_noise(processes.device):
        trial = copy.deepcopy(model).to(processes.device).train()
        batches = Batches(train.to(processes.device), config.batch_size, config.seed)
        trial.initialize(batches(0))
        learner = Learner(trial, config, processes)
        with checks.values(False):
            update = _seconds(lambda step: learner.update(step, batches(step)), trials, WARMUP)
            rows = validation_subset(validation, config).to(processes.device)
            few = rows[: config.batch_size]
            validate = _seconds(lambda _: learner.validate(few), max(2, trials // 10), 1)
    return Pace(update, validate * len(rows) / len(few))


def _seconds(act: Callable[[int], object], times: int, warmup: int) -> float:
    """Mean time of act(i), the first `warmup` calls not counted."""
    start = 0.0
    for i in range(warmup + times):
        if i == warmup:
            _finish()
            start = time.perf_counter()
        act(i)
    _finish()
    return (time.perf_counter() - start) / times


def _finish() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
