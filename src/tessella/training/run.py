"""The training loop of one process: when to look, log, validate, save and stop."""

import math
import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from tessella import checks
from tessella.contracts import Examples, Source, Stream, Trainable
from tessella.progress import say
from tessella.training.batches import Batches, batches_of, placed
from tessella.training.config import TrainingConfig
from tessella.training.folder import CheckpointState, RunFolder
from tessella.training.interruption import Interruption
from tessella.training.learner import Learner
from tessella.training.pace import Pace, measure_pace
from tessella.training.processes import Processes
from tessella.training.progress import Progress, why_stopped
from tessella.training.randomness import derived_seed, seed_noise
from tessella.training.result import NonFiniteError, StopReason
from tessella.training.threads import Watch, usable
from tessella.training.validation import validation_subset
from tessella.training.windows import WindowBatches

RESTS = 20  # times as long as measuring the pace took, or saving, before it may be done again
LONG = 1.0  # seconds, from which on saving rests


def finished(state: CheckpointState, config: TrainingConfig) -> StopReason | None:
    """Why a run that stands there is over for good, or None if it can go on."""
    if state.step >= config.steps:
        return "steps"
    return "patience" if config.patience and state.stale >= config.patience else None


class Run:
    """One run, from its beginning or from its resume state to its end.

    A resume state is always written after everything else that is due at its step, and everything that decides how the
    run goes on is in it: that is what makes a resumed run repeat an uninterrupted one.
    """

    def __init__(
        self,
        model: Trainable,
        train: Examples,
        validation: Source,
        config: TrainingConfig,
        processes: Processes,
        interruption: Interruption,
    ):
        assert isinstance(model, nn.Module)
        self.model, self.config, self.processes = model.to(processes.device).train(), config, processes
        self.source, self.validation = placed(train, processes.device), validation.to(processes.device)
        self.validation_rows = validation_subset(validation, config).to(processes.device)
        self.batches = self._batches(processes.rank, processes.number)
        self.visible = config.progress and processes.rank == 0
        self._interruption = interruption

    def _batches(self, rank: int, processes: int) -> Batches | WindowBatches:
        config = self.config
        return batches_of(self.source, config.batch_size, config.seed, rank, processes, self.processes.device)

    def start(
        self, folder: RunFolder, description: Mapping[str, Any], state: CheckpointState | None, pace: Pace | None = None
    ) -> None:
        """Go back to the resume state; without one, initialise and validate the model and write the first."""
        self.state = state or CheckpointState()
        self.state.eager_because = ""  # until it is found again
        self._started = time.monotonic() - self.state.seconds
        self._take_threads(pace)
        if state is None:
            self._initialize()
        self.learner = Learner(self.model, self.config, self.processes)
        if state is None:
            seed_noise(derived_seed(self.config.seed, "noise", self.processes.rank), self.processes.device)
        else:
            self.learner.load(folder.tensors())
        self.processes.wait()  # all processes have read the folder before the first of them writes
        folder.begin(description, state)
        self.folder = folder
        self._interrupted, self._spent, self._due, self._saved = False, self._share_spent(), False, time.monotonic()
        self._saving, self._resting = 0.0, False
        if state is None:
            self._act(log=False, validate=True, save=True)
        elif self.visible:
            say(f"resuming at step {state.step:,} of {self.config.steps:,}")

    @torch.no_grad()
    def _initialize(self) -> None:
        """Show the model the whole first batch; all processes see the same rows and noise.

        Of a stream each sees its own rows, and has the weights of the first process then.
        """
        batches = self.batches if isinstance(self.source, Stream) else self._batches(rank=0, processes=1)
        first = batches(0)
        seed_noise(derived_seed(self.config.seed, "initialize"), self.processes.device)
        self.model.initialize(*first)

    def train(self) -> StopReason:
        """Step until there is a reason to stop."""
        with (
            checks.values(False),  # the model has seen real rows by now; from here on, looking at values costs time
            Progress(self.config, self.state.step, self.state.seconds, self.visible) as self._progress,
        ):
            while (reason := self._reason()) is None:
                self._update()
                self._after_update()
            unseen = reason != "interrupted" and self.state.validated != self.state.step
            self._act(log=False, validate=unseen, save=True)
        if self.visible and reason != "steps":
            say(why_stopped(reason, self.config))
        self.model.zero_grad()
        return reason

    def _update(self) -> None:
        began = time.monotonic() if self._watch else 0.0
        self.learner.update(self.state.step, self.batches(self.state.step), self._spent)
        self.state.step += 1
        self._note_eager_updates()
        if self._watch and self._watch.saw(time.monotonic() - began):
            self._choose_threads_again()

    def _note_eager_updates(self) -> None:
        """Say and remember, once, why updates are not captured."""
        reason = self.learner.eager_because
        if reason != self.state.eager_because:
            self.state.eager_because = reason
            if self.visible:
                say(f"updates run eagerly, not as a CUDA graph: {reason}")

    def _take_threads(self, pace: Pace | None) -> None:
        """Those asked for, or those of the run so far, or those that make updates fastest.

        Threads change how sums are rounded, so they are part of the resume state: where the pace holds, a resumed run
        repeats the one that was not interrupted. On a GPU, and in several processes, there is nothing to choose.
        """
        config, state = self.config, self.state
        chooses = config.threads is None and self.processes.device.type == "cpu" and self.processes.number == 1
        if config.threads is not None:
            state.threads, state.pace = config.threads, 0.0
        elif chooses and not state.threads:
            self._choose_threads(pace)
        if state.threads:
            torch.set_num_threads(state.threads)
        self._watch = Watch(state.pace) if chooses and state.pace else None

    def _choose_threads(self, pace: Pace | None) -> None:
        most = usable()
        if most == 1:
            self.state.threads = 1
            return
        pace = pace or measure_pace(self.model, self.source, self.validation, self.config)
        self.state.threads, self.state.pace = pace.threads, pace.update
        if self.visible:
            say(f"threads: {pace.threads} of {most}, {1 / pace.update:.3g} steps/s")

    def _choose_threads_again(self) -> None:
        """The pace has collapsed: other programs may have come, or gone."""
        before, began = self.state.threads, time.monotonic()
        pace = measure_pace(self.model, self.source, self.validation, self.config, initialize=False)
        self.state.threads, self.state.pace = pace.threads, pace.update
        torch.set_num_threads(pace.threads)
        self._watch = Watch(pace.update, rest=RESTS * (time.monotonic() - began))
        if self.visible:
            say(f"threads: {pace.threads} instead of {before}, as the pace collapsed; {1 / pace.update:.3g} steps/s")

    def _reason(self) -> StopReason | None:
        over = finished(self.state, self.config)
        if over is not None or not (self._interrupted or self._spent >= 1):
            return over
        return "interrupted" if self._interrupted else "time_budget"

    def _after_update(self) -> None:
        step, config = self.state.step, self.config
        last = step == config.steps
        log = last or step % config.log_every == 0
        validate = last or step % config.validate_every == 0
        save = step % config.checkpoint_every == 0
        if log or validate or save or self.processes.device.type == "cpu":
            self._look()
            loss = self._act(log, validate, save or self._due).get("loss")
            self._progress.show(step, self.state.seconds, self.state.best_validation, loss)

    def _look(self) -> None:
        """Where host, device and processes meet: a non-finite number, Ctrl-C and the clock concern all of them."""
        since = time.monotonic() - self._saved
        late, resting = since >= self.config.checkpoint_seconds, LONG < self._saving > since / RESTS
        here = [self._interruption.requested, late, resting, self._share_spent()]
        seen = torch.cat([self.learner.in_trouble()[None], torch.tensor(here, device=self.processes.device)])
        trouble, interrupted, due, resting, self._spent = self.processes.reduce(seen, "max").tolist()
        if trouble:
            raise NonFiniteError(*self.learner.first_trouble(), self.folder.resume)
        self._interrupted, self._due, self._resting = bool(interrupted), bool(due and not resting), bool(resting)

    def _act(self, log: bool, validate: bool, save: bool) -> dict[str, float]:
        """Measure what is due, write it down, then save; what was measured."""
        measured: dict[str, float] = {}
        if log:
            measured["loss"] = self.learner.mean_loss()
        if validate:
            measured["validation"] = self.learner.validate(self.validation, self.validation_rows)
        improved = validate and self._judge(measured["validation"])
        self.state.seconds = time.monotonic() - self._started
        if measured:
            self.folder.record(self.state.step, self.state.seconds, **measured)
        if improved and self._resting and not save:  # tables of a million categories are gigabytes
            self.folder.keep_model(self.learner.average.state_dict(), self.state)
            return measured
        began = time.monotonic()
        if improved or save:
            self.folder.save_resume(self.learner.state(), self.state)
        if improved:
            self.folder.save_model(self.learner.average.state_dict(), self.state)
        if improved or save:
            self._saved = time.monotonic()
            self._saving = self._saved - began
        return measured

    def _judge(self, validation: float) -> bool:
        """Whether this is the best validation so far; the first is, and a finite one beats any that is not."""
        state = self.state
        state.validated = state.step
        if state.step == 0:
            state.initial_validation = validation
        if validation < state.best_validation or not math.isfinite(state.best_validation):
            state.best_step, state.best_validation, state.stale = state.step, validation, 0
            return True
        state.stale += 1
        return False

    def _share_spent(self) -> float:
        """Of the time budget; 0 without one."""
        budget = self.config.time_budget
        return 0.0 if budget is None else (time.monotonic() - self._started) / budget
