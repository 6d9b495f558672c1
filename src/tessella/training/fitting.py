"""`fit`: from a model and sources of batches to a run folder."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tessella.contracts import Examples, Source, Stream, Trainable
from tessella.training.batches import check_examples, check_source
from tessella.training.config import TrainingConfig
from tessella.training.folder import RunFolder, load_best
from tessella.training.interruption import Interruption
from tessella.training.pace import Pace
from tessella.training.processes import Processes, accelerator_of
from tessella.training.randomness import fork_rng
from tessella.training.result import FitResult, StopReason
from tessella.training.run import Run, finished
from tessella.training.threads import using
from tessella.version import __version__


def fit(
    model: Trainable,
    train: Examples,
    validation: Source,
    config: TrainingConfig,
    folder: Path | str,
    about: Mapping[str, Any] | None = None,
    resume: bool = True,
    pace: Pace | None = None,
) -> FitResult:
    """Minimise the mean of `model.loss` over the training rows; leave the best averages in `model` and `folder`.

    Calling it again on the same folder continues the run: killed at any moment, it ends, on the CPU, with the weights
    and metrics of a run that was never interrupted, bit by bit. A finished run returns its result at once, on any
    device: what a GPU trained can be looked at where there is none. Ctrl-C ends the current step, writes the resume
    state and returns with `stopped="interrupted"`.

    The resume state is written every `checkpoint_every` steps and every `checkpoint_seconds`, at each improvement, and
    when the run stops; where that takes more than a second, seconds and improvements wait until a twentieth of the time
    is spent on it at most. It is never written without looking first whether every loss and gradient so far was finite
    (`NonFiniteError` otherwise), which happens each step on the CPU and each `log_every` steps on a GPU. While it
    trains, the folder is this process's (`BusyFolderError` for others). A run that its time budget stops validates once
    more, and can be continued with a larger budget; the learning rate follows the steps, not the budget.

    With `devices` > 1 the calling script is started once more for each further device, unless `torchrun` has started
    as many processes already; `fit` returns in all of them.

    Args:
        model: see `Trainable`. Training starts from its weights: seed its construction if a restart shall repeat it. It
            comes back on the training device, in evaluation mode.
        train: a source of batches, `Rows(x)` for rows x of a table, moved to the device as a whole; or a stream, of
            which some groups are in memory at a time.
        validation: a source of the same kind of rows.
        config: how to train.
        folder: the run folder, see `training.folder`.
        about: what else `config.json` shall say about the run (model, data), in JSON's types; part of its identity.
        resume: continue the run in `folder` if there is one; False replaces it.
        pace: where the caller has measured it; otherwise a run that chooses its threads measures it first. A resumed
            run keeps its threads, since other numbers of them round differently; torch's number comes back at the end.

    Returns:
        The best validation value, in nats per row, and how the run went.

    >>> import tempfile
    >>> from tessella.data import Rows
    >>> class Mean(nn.Module):  # nll(x) = (x - m)^2 / 2
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.m = nn.Parameter(torch.zeros(()))
    ...     def nll(self, x): return (x - self.m).square() / 2
    ...     def loss(self, x): return self.nll(x).mean()
    ...     def initialize(self, x): pass
    >>> config = TrainingConfig(steps=100, warmup_steps=0, learning_rate=0.1, accelerator="cpu", progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = fit(Mean(), Rows(torch.tensor([1.0, 3.0])), Rows(torch.tensor([2.0])), config, folder)
    >>> result.stopped, round(result.best_validation, 2)
    ('steps', 0.0)
    """
    module = _checked(model, train, validation)
    config = dataclasses.replace(config, accelerator=accelerator_of(config))
    processes = Processes(config)
    run_folder = RunFolder(folder, writes=processes.rank == 0)
    description = _describe(train, validation, config, about)
    state = run_folder.state() if resume else None
    stopped = None if state is None else finished(state, config)
    if resume:
        run_folder.check_same(description, elsewhere=stopped is not None)
    if state is not None:
        run_folder.restore_model(state)
    if stopped is None:
        with (
            run_folder.claimed(),
            fork_rng(processes.device),
            using(torch.get_num_threads()),
            Interruption() as interruption,
        ):
            state = run_folder.state() if resume else None  # whoever had the folder until now may have gone on
            run = Run(model, train, validation, config, processes, interruption)
            run.start(run_folder, description, state, pace)
            stopped = run.train()
            run_folder.save_again()
    return _conclude(module, run_folder, processes, stopped)


def _conclude(model: nn.Module, folder: RunFolder, processes: Processes, stopped: StopReason) -> FitResult:
    """What is on disk, which all processes agree about: the weights into the model, the numbers into the result."""
    processes.wait()
    state = folder.state()
    assert state is not None
    load_best(model.to(processes.device).eval(), folder)
    return FitResult(
        best_step=state.best_step,
        best_validation=state.best_validation,
        initial_validation=state.initial_validation,
        steps=state.step,
        seconds=state.seconds,
        stopped=stopped,
        threads=state.threads,
        unsaved="" if folder.unsaved is None else folder.fault,
    )


def _checked(model: Trainable, train: Examples, validation: Source) -> nn.Module:
    """The model as a module; the sources have examples, of one kind."""
    if not isinstance(model, nn.Module) or not isinstance(model, Trainable):
        raise TypeError(f"model: got {type(model).__name__}; expected an nn.Module with loss, nll and initialize")
    check_examples("train", train)
    check_source("validation", validation)
    if isinstance(train, Stream):
        expected, came = _row_shapes(train), _row_shapes(validation)
    else:
        expected, came = _example(train), _example(validation)
    if came != expected:
        raise ValueError(f"validation: got rows of {came}; expected those of train, {expected}")
    return model


def _row_shapes(examples: Examples) -> str:
    """Shape of each tensor of one example, which nobody has to read for that."""
    return " and ".join(f"shape {tuple(shape[1:])}" for shape in examples.shapes)


def _example(source: Source) -> str:
    """Shape and type of each tensor of one example."""
    batch = source.batch(torch.zeros(1, dtype=torch.int64))
    return " and ".join(f"shape {tuple(tensor.shape[1:])} ({tensor.dtype})" for tensor in batch)


def _describe(
    train: Examples, validation: Source, config: TrainingConfig, about: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What `config.json` says, as it reads when it comes back from there."""
    description = {
        "tessella": __version__,
        "torch": str(torch.__version__),
        "seed": config.seed,
        "training": dataclasses.asdict(config),
        "data": {"train": train.shapes, "validation": validation.shapes},
        "run": dict(about or {}),
    }
    try:
        as_read: dict[str, Any] = json.loads(json.dumps(description))
    except TypeError as error:
        raise TypeError(
            f"about: {error}; expected strings, numbers, booleans, None, and lists and mappings of them"
        ) from None
    return as_read
