"""The training loop of one process: when to look, log, validate, save and stop."""

import math
import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.training.batches import Batches
from tessella.training.config import TrainingConfig
from tessella.training.contract import NonFiniteError, StopReason, Trainable
from tessella.training.folder import RunFolder, Standing
from tessella.training.interruption import Interruption
from tessella.training.learner import Learner
from tessella.training.processes import Processes
from tessella.training.progress import Progress
from tessella.training.randomness import derived_seed, seed_noise
from tessella.training.validation import validation_subset


def finished(standing: Standing, config: TrainingConfig) -> StopReason | None:
    """Why a run that stands there is over for good, or None if it can go on."""
    if standing.step >= config.steps:
        return "steps"
    return "patience" if config.patience and standing.stale >= config.patience else None


class Run:
    """One run, from its beginning or from its resume state to its end.

    A resume state is always written after everything else that is due at its step, and everything that decides how the
    run goes on is in it: that is what makes a resumed run repeat an uninterrupted one.
    """

    def __init__(
        self, model: Trainable, train: Tensor, validation: Tensor, config: TrainingConfig, processes: Processes
    ):
        assert isinstance(model, nn.Module)
        self.model, self.config, self.processes = model.to(processes.device).train(), config, processes
        self.train_rows = train.to(processes.device)
        self.validation_rows = validation_subset(validation, config).to(processes.device)
        self.batches = Batches(self.train_rows, config.batch_size, config.seed, processes.rank, processes.number)

    def start(self, folder: RunFolder, description: Mapping[str, Any], standing: Standing | None) -> None:
        """Go back to the resume state; without one, initialise and validate the model and write the first."""
        if standing is None:
            self._initialize()
        self.learner = Learner(self.model, self.config, self.processes)
        if standing is None:
            seed_noise(derived_seed(self.config.seed, "noise", self.processes.rank), self.processes.device)
        else:
            self.learner.load(folder.tensors())
        self.processes.wait()  # all processes have read the folder before the first of them writes
        folder.begin(description, standing)
        self.folder, self.standing = folder, standing or Standing()
        self._started = time.monotonic() - self.standing.seconds
        self._interrupted, self._spent = False, self._share_spent()
        if standing is None:
            self._act(log=False, validate=True, save=True)

    @torch.no_grad()
    def _initialize(self) -> None:
        """Show the model the whole first batch; all processes see the same rows and noise."""
        first = Batches(self.train_rows, self.config.batch_size, self.config.seed)(0)
        seed_noise(derived_seed(self.config.seed, "initialize"), self.processes.device)
        self.model.initialize(first)

    def train(self) -> StopReason:
        """Step until there is a reason to stop."""
        visible = self.config.progress and self.processes.rank == 0
        with (
            checks.values(False),  # the model has seen real rows by now; from here on, looking at values costs time
            Progress(self.config, self.standing.step, self.standing.seconds, visible) as self._progress,
            Interruption() as self._interruption,
        ):
            while (reason := self._reason()) is None:
                self.learner.update(self.standing.step, self.batches(self.standing.step), self._spent)
                self.standing.step += 1
                self._after_update()
            unseen = reason != "interrupted" and self.standing.validated != self.standing.step
            self._act(log=False, validate=unseen, save=True)
        self.model.zero_grad()
        return reason

    def _reason(self) -> StopReason | None:
        over = finished(self.standing, self.config)
        if over is not None or not (self._interrupted or self._spent >= 1):
            return over
        return "interrupted" if self._interrupted else "time_budget"

    def _after_update(self) -> None:
        step, config = self.standing.step, self.config
        last = step == config.steps
        log = last or step % config.log_every == 0
        validate = last or step % config.validate_every == 0
        save = step % config.checkpoint_every == 0
        if log or validate or save or self.processes.device.type == "cpu":
            self._look()
            loss = self._act(log, validate, save).get("loss")
            self._progress.show(step, self.standing.seconds, self.standing.best_validation, loss)

    def _look(self) -> None:
        """Where host, device and processes meet: a non-finite number, Ctrl-C and the clock concern all of them."""
        seen = torch.tensor([self._interruption.requested, self._share_spent()], device=self.processes.device)
        seen = torch.cat([self.learner.in_trouble()[None], seen])
        trouble, interrupted, self._spent = self.processes.reduce(seen, "max").tolist()
        if trouble:
            raise NonFiniteError(*self.learner.first_trouble(), self.folder.resume)
        self._interrupted = bool(interrupted)

    def _act(self, log: bool, validate: bool, save: bool) -> dict[str, float]:
        """Measure what is due, write it down, then save; what was measured."""
        measured: dict[str, float] = {}
        if log:
            measured["loss"] = self.learner.mean_loss()
        if validate:
            measured["validation"] = self.learner.validate(self.validation_rows)
        improved = validate and self._judge(measured["validation"])
        self.standing.seconds = time.monotonic() - self._started
        if measured:
            self.folder.record(self.standing.step, self.standing.seconds, **measured)
        if improved or save:
            self.folder.save_resume(self.learner.state(), self.standing)
        if improved:
            self.folder.save_model(self.learner.average.state_dict(), self.standing)
        return measured

    def _judge(self, validation: float) -> bool:
        """Whether this is the best validation so far; the first is, and a finite one beats any that is not."""
        standing = self.standing
        standing.validated = standing.step
        if standing.step == 0:
            standing.initial_validation = validation
        if validation < standing.best_validation or not math.isfinite(standing.best_validation):
            standing.best_step, standing.best_validation, standing.stale = standing.step, validation, 0
            return True
        standing.stale += 1
        return False

    def _share_spent(self) -> float:
        """Of the time budget; 0 without one."""
        budget = self.config.time_budget
        return 0.0 if budget is None else (time.monotonic() - self._started) / budget
