"""What all estimators share about learning: settings and their checks, the split of the rows, training by a plan."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

import numpy as np
import torch
from torch import nn

from tessella.configs import from_json, to_json
from tessella.contracts import Examples, Source, Stream
from tessella.folders import read_json
from tessella.training import FitResult, NonFiniteError, RunFolder, Trainable, TrainingConfig, fit
from tessella.training.budget import within_budget
from tessella.training.config import Optimizer, check_threads
from tessella.training.processes import Processes
from tessella.training.randomness import derived_seed
from tessella.training.threads import uncontended, using

Device = Literal["auto", "cpu", "cuda"]

SEEDS = 2**32  # that numpy takes
STEPS = 3000  # where there is no budget
VALIDATIONS = 20
VALIDATION_ROWS = 1000  # of each, where a plan does not say
PATIENCE = 8
EPOCHS, FEWEST_STEPS = 12, 1000
DROPOUT, ROWS_FOR_DROPOUT = 0.1, 50_000


@dataclass(frozen=True)
class Plan:
    """What decides how a model is trained."""

    seed: int
    device: Device
    max_steps: int | None
    time_budget: float | None
    progress: bool
    learning_rate: float = 1e-3
    batch_size: int = 64
    optimizer: Optimizer = "adam"
    threads: int | None = None
    validation_rows: int | None = None
    checkpoints: Path | None = None
    """Folder for the state of training, from which the same plan for the same rows continues; None: a temporary one."""
    processes: int = 1
    """That train together, each of which has this plan."""


def limited_epochs(plan: Plan, rows: int, epochs: int = EPOCHS, fewest: int = FEWEST_STEPS) -> Plan:
    """The plan with at most so many epochs, but some steps in any case, where it has no number of steps.

    A schedule that ends much later learns the rows by heart before the learning rate comes to rest.
    """
    if plan.max_steps is not None:
        return plan
    most = max(fewest, epochs * rows // plan.batch_size)
    return replace(plan, max_steps=most if plan.time_budget is not None else min(most, STEPS))


def dropout(rows: int) -> float:
    """Of a network that sees everything before a column, where there are so many rows to learn from."""
    return DROPOUT if rows < ROWS_FOR_DROPOUT else 0.0


def train_by_plan(
    model: Trainable, rows: tuple[Examples, Source], plan: Plan, spent: float = 0.0
) -> tuple[FitResult, list[dict[str, Any]]]:
    """Train on (training, validation) rows; how it went, and its curve.

    Args:
        spent: seconds of the plan's time budget that are gone already.
    """
    about = {} if plan.checkpoints is None else _about(model, rows, plan)
    with _together(plan) as folder:
        config, pace = _begun(folder, about), None
        resume = config is not None
        if config is None:
            config, pace = within_budget(
                _config(plan), lambda: model, *rows, validations=VALIDATIONS, max_steps=plan.max_steps, spent=spent
            )
        try:
            result = fit(model, *rows, config, folder, about, resume, pace)
        except NonFiniteError as error:
            shutil.rmtree(folder, ignore_errors=True)  # from its last state a run would come to the same end
            raise ArithmeticError(
                f"step {error.step}: the loss or its gradient is not finite; try a smaller learning_rate than "
                f"{config.learning_rate}, or look for extreme numbers in the table"
            ) from None
        return result, RunFolder(folder).read_metrics()


@contextmanager
def _together(plan: Plan) -> Iterator[Path]:
    """The folder of a run, the same in all of its processes, until all of them are done with it."""
    if plan.processes == 1:
        with _folder(plan) as folder:
            yield folder
        return
    processes = Processes(_config(plan))
    with _folder(plan) as folder:
        yield Path(processes.agreed(str(folder)))
        processes.wait()


@contextmanager
def _folder(plan: Plan) -> Iterator[Path]:
    """Where the state of training is kept: where the plan says, or until the end."""
    if plan.checkpoints is not None:
        yield plan.checkpoints
        return
    with tempfile.TemporaryDirectory(prefix="tessella-") as folder:
        yield Path(folder)


def _begun(folder: Path, about: dict[str, Any]) -> TrainingConfig | None:
    """The config of the run in a folder, steps and all, if it is the one so described; None where it is another."""
    run = RunFolder(folder)
    if run.state() is None or not run.config.exists():
        return None
    there = read_json(run.config)
    return from_json(TrainingConfig, there["training"]) if there.get("run") == about else None


def _about(model: Trainable, rows: tuple[Examples, Source], plan: Plan) -> dict[str, Any]:
    """What makes a run the same: what was asked for, the shape of the model, the rows."""
    assert isinstance(model, nn.Module)
    shapes = {name: list(weight.shape) for name, weight in model.state_dict().items()}
    return {"asked": to_json(_config(plan)), "model": shapes, "rows": [_digest(part) for part in rows]}


def _digest(rows: Examples) -> str:
    """Of all of them, in their order."""
    if isinstance(rows, Stream):
        return rows.digest
    found = sha256()
    for part in rows.batch(torch.arange(len(rows))):
        found.update(part.contiguous().cpu().numpy().data)
    return found.hexdigest()


def _config(plan: Plan) -> TrainingConfig:
    return TrainingConfig(
        steps=STEPS if plan.max_steps is None else plan.max_steps,
        batch_size=plan.batch_size + -plan.batch_size % plan.processes,
        learning_rate=plan.learning_rate,
        optimizer=plan.optimizer,
        patience=PATIENCE,
        validation_rows=plan.validation_rows or VALIDATION_ROWS,
        time_budget=plan.time_budget,
        seed=plan.seed,
        accelerator=plan.device,
        progress=plan.progress,
        threads=plan.threads,
        devices=plan.processes,
    )


def split_rows(rows: int, seed: int, validation: float, test: float = 0.0) -> dict[str, np.ndarray]:
    """Positions of training, validation and test rows by their shares; at least one of the first two."""
    generator = torch.Generator().manual_seed(derived_seed(seed, "split"))
    order = torch.randperm(rows, generator=generator).numpy()
    tested = min(round(test * rows), rows - 2)
    held_out = min(max(1, round(validation * rows)), rows - tested - 1)
    ends = np.split(order, [tested, tested + held_out])
    return {"train": ends[2], "validation": ends[1], "test": ends[0]}


def check_settings(
    device: str, time_budget: float | None, validation_fraction: float, threads: int | None, random_state: Any
) -> None:
    """The settings that all estimators have."""
    check_device(device)
    check_threads(threads)
    if isinstance(random_state, int | np.integer) and not 0 <= random_state < SEEDS:
        raise ValueError(
            f"random_state: got {random_state}; expected 0 to {SEEDS - 1}, a generator of numpy's, or None"
        )
    if time_budget is not None and not time_budget > 0:
        raise ValueError(f"time_budget: got {time_budget}; expected a positive number of seconds, or None")
    if not 0 < validation_fraction < 1:
        raise ValueError(f"validation_fraction: got {validation_fraction}; expected a number between 0 and 1")


def check_device(device: str) -> None:
    """A setting that is possible here."""
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device: got {device!r}; expected one of auto, cpu, cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: got 'cuda', but torch sees no GPU here; expected 'cpu' or 'auto'")


def to_device(model: nn.Module, device: Device) -> None:
    """Put a model that is not to be trained further where the setting says."""
    model.to("cuda" if on_gpu(device) else "cpu").eval()


def on_gpu(device: Device) -> bool:
    """Whether the setting means a GPU here."""
    return device != "cpu" and torch.cuda.is_available()


class _HasThreads(Protocol):
    threads: int | None


E = TypeVar("E", bound=_HasThreads)
P = ParamSpec("P")
R = TypeVar("R")


def limited_threads(method: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[E, P], R]:
    """The method of an estimator, with no more threads than the process may use, nor than the estimator's `threads`.

    Torch takes a thread for each core of the machine, also in a container that has the time of one, or where another
    program has the cores.
    """

    @wraps(method)
    def limited(self: E, *args: P.args, **kwargs: P.kwargs) -> R:
        check_threads(self.threads)
        most = uncontended()
        with using(min(most, self.threads or most)):
            return method(self, *args, **kwargs)

    return limited


@contextmanager
def single_precision() -> Iterator[None]:
    """New parameters are float32 inside."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
