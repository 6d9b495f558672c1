"""What fits into a time budget: steps are counted before a run, so that its schedule ends when the time does."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from tessella.contracts import Examples, Source, Trainable
from tessella.folders import read_json
from tessella.training.config import TrainingConfig
from tessella.training.folder import RunFolder
from tessella.training.pace import Pace, measure_pace
from tessella.training.processes import Processes

UNPLANNED = 2  # validations: before the first update, and where time ends a run
LEAST = 1e-3  # seconds of a budget that is spent already
AHEAD = 3  # times the steps that a trial has room for, where the clock decides: others may have slowed it down


def within_budget(
    config: TrainingConfig,
    make: Callable[[], Trainable],
    train: Examples,
    validation: Source,
    *,
    validations: int,
    max_steps: int | None = None,
    spent: float | None = None,
    folder: Path | str | None = None,
) -> tuple[TrainingConfig, Pace | None]:
    """The config with its steps, warm-up, validations and checkpoints fixed, and the pace where it was measured.

    Without a time budget the steps are those of the config; with one, as many as a trial says it has room for.

    Args:
        config: how to train. A tenth of the steps at most are its warm-up; a checkpoint is written at the end and at
            each improvement.
        make: the untrained model; called only where it is timed, which leaves it alone.
        train, validation: as in `fit`.
        validations: evenly spread over the steps, at most so many.
        max_steps: at most so many steps, whatever the budget has room for.
        spent: seconds of the budget that are gone already; the trial is then taken from it too, and the clock ends the
            run rather than its steps. None: the budget is for training alone, and its steps are meant to end with it.
        folder: of the run; one that had the same budget keeps its steps, as timing again would plan another run.

    Returns:
        The config and the pace, both for `fit`: nothing is measured twice.
    """
    steps, pace, ahead = config.steps, None, 1
    if config.time_budget is not None:
        steps = _steps_before(config, folder)
        if not steps:
            began = time.perf_counter()
            pace = measure_pace(make(), train, validation, config)
            gone = 0.0 if spent is None else spent + time.perf_counter() - began
            left = max(config.time_budget - gone, LEAST)
            steps = _agreed(pace.steps_within(left, validations + UNPLANNED), config)
            config = replace(config, time_budget=left)
            ahead = 1 if spent is None else AHEAD
    steps, most = (number if max_steps is None else min(number, max_steps) for number in (steps, ahead * steps))
    return replace(_with_steps(config, steps, validations), steps=most, checkpoint_every=most), pace


def _agreed(steps: int, config: TrainingConfig) -> int:
    """Steps that all processes of a run have room for."""
    if config.devices == 1:
        return steps
    processes = Processes(config)
    return int(processes.reduce(torch.tensor(steps, device=processes.device), "min"))


def _with_steps(config: TrainingConfig, steps: int, validations: int) -> TrainingConfig:
    """The config with so many steps, and what follows from them.

    >>> config = _with_steps(TrainingConfig(warmup_steps=200), steps=1000, validations=30)
    >>> config.warmup_steps, config.validate_every, config.checkpoint_every
    (100, 34, 1000)
    """
    return replace(
        config,
        steps=steps,
        warmup_steps=min(config.warmup_steps, steps // 10),
        validate_every=-(-steps // validations),
        checkpoint_every=steps,
    )


def _steps_before(config: TrainingConfig, folder: Path | str | None) -> int:
    """Steps of the run in the folder, if it had the same budget; 0 without one."""
    if folder is None or not (path := RunFolder(folder).config).exists():
        return 0
    there = read_json(path)["training"]
    return int(there["steps"]) if there.get("time_budget") == config.time_budget else 0
