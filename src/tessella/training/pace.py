"""How fast a run will be, and with how many threads: what a time budget has room for is counted beforehand."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import torch
from torch import nn

from tessella import checks
from tessella.contracts import Examples, Source, Trainable
from tessella.training.batches import batches_of, check_examples, check_source, placed
from tessella.training.config import TrainingConfig
from tessella.training.learner import Learner
from tessella.training.processes import Processes, accelerator_of
from tessella.training.randomness import fork_rng
from tessella.training.threads import candidates, contended, fastest, usable, using
from tessella.training.validation import validation_subset

WARMUP = 5  # updates that are not counted: libraries warm up, and on a GPU the step is captured
TRIALS = {"cpu": 5, "cuda": 40}
LONGEST = {"cpu": 1.5, "cuda": inf}  # seconds of a trial, if its first updates take no longer
ROOM = 0.93  # of a budget; the rest is for starting up and for what the trial did not foresee


@dataclass(frozen=True)
class Pace:
    """Seconds that one update takes, and one validation, with so many threads."""

    update: float
    validation: float
    threads: int = 1

    def steps_within(self, seconds: float, validations: int) -> int:
        """Updates that fit into a budget together with so many validations; at least 1.

        Half of the budget is theirs whatever validations took in a trial: where those take more, the time ends the run.

        >>> Pace(update=0.1, validation=1.0).steps_within(100.0, validations=3)
        900
        >>> Pace(update=0.1, validation=1.0).steps_within(100.0, validations=300)
        465
        """
        room = ROOM * seconds
        return max(1, int(max(room - validations * self.validation, room / 2) / self.update))


def measure_pace(
    model: Trainable, train: Examples, validation: Source, config: TrainingConfig, initialize: bool = True
) -> Pace:
    """Train a copy of the model for a moment, exactly as `fit` would on one device; model and noise are left alone.

    Where there are to be several processes, a batch is one process's share of it.

    On a CPU, where `config` does not say how many threads, 1, 2, 4, ... are tried, and the fastest number taken.

    Args:
        model, train, validation, config: as in `fit`.
        initialize: False for a model that has been trained already.
    """
    assert isinstance(model, nn.Module)
    check_examples("train", train)
    check_source("validation", validation)
    share = max(1, config.batch_size // config.devices)
    config = replace(config, accelerator=accelerator_of(config), devices=1, batch_size=share)
    processes = Processes(config)
    device = processes.device
    with fork_rng(device), using(torch.get_num_threads()), checks.values(False):
        trial = copy.deepcopy(model).to(device).train()
        batches = batches_of(placed(train, device), config.batch_size, config.seed, 0, 1, device)
        if initialize:
            with torch.no_grad():
                trial.initialize(*batches(0))
        learner = Learner(trial, config, processes)
        threads, update = _fastest_updates(lambda step: learner.update(step, batches(step)), config)
        torch.set_num_threads(threads)
        rows = validation_subset(validation, config).to(device)
        few, watched = rows[: config.batch_size], validation.to(device)
        validate = _seconds(lambda _: learner.validate(watched, few), max(2, TRIALS[device.type] // 10), 1)
    return Pace(update, validate * len(rows) / len(few), threads)


def _fastest_updates(update: Callable[[int], object], config: TrainingConfig) -> tuple[int, float]:
    """The number of threads, and the seconds that an update takes with them."""
    trials, longest = TRIALS[config.accelerator], LONGEST[config.accelerator]

    def seconds(threads: int, worth: float) -> float:
        torch.set_num_threads(threads)
        if worth < inf and contended(threads):
            return inf
        return _seconds(update, trials, WARMUP, longest, hopeless=(WARMUP + trials) * worth)

    if config.threads is not None:
        return fastest(seconds, [config.threads])
    return fastest(seconds, candidates(usable()) if config.accelerator == "cpu" else [torch.get_num_threads()])


def _seconds(
    act: Callable[[int], object], times: int, warmup: int, longest: float = inf, hopeless: float = inf
) -> float:
    """Mean time of act(i), the first `warmup` calls not counted.

    Args:
        act: what is timed.
        times: calls that count; fewer, but one, after `longest` seconds in all.
        warmup: calls that do not; fewer after `longest` seconds, and infinity is the answer after `hopeless` ones.
    """
    began, done = time.perf_counter(), 0
    while done < warmup and time.perf_counter() - began < longest:
        act(done)
        done += 1
        if time.perf_counter() - began > hopeless:
            return inf
    _finish()
    start, first = time.perf_counter(), done
    while done == first or (done < first + times and time.perf_counter() - began < longest):
        act(done)
        done += 1
    _finish()
    return (time.perf_counter() - start) / (done - first)


def _finish() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
