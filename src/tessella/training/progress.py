"""The line that people watch."""

from datetime import timedelta
from typing import Self

from tessella import progress
from tessella.training.config import TrainingConfig
from tessella.training.result import StopReason


class Progress:
    """The loss (mean since the last log), the best validation, steps per second, and the time left."""

    def __init__(self, config: TrainingConfig, step: int, seconds: float, visible: bool):
        self.config, self.visible = config, visible
        self._first = (step, seconds)
        self._loss = ""
        self._shown = progress.Progress("training", config.steps, visible, step)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.__exit__()

    def show(self, step: int, seconds: float, best: float, loss: float | None) -> None:
        """Move to `step`, reached after so many seconds of training in total."""
        if not self.visible:
            return
        if loss is not None:
            self._loss = f"loss {loss:.4f}, "
        rate = (step - self._first[0]) / max(seconds - self._first[1], 1e-9)
        left = seconds_left(self.config, step, seconds, rate)
        note = f"{self._loss}best {best:.4f}, {rate:.3g} steps/s, {timedelta(seconds=round(left))} left"
        self._shown.move(step, note, min(self.config.steps, step + round(rate * left)) if rate else None)


def why_stopped(reason: StopReason, config: TrainingConfig) -> str:
    """Why a run ended before its last step, in words.

    >>> why_stopped("patience", TrainingConfig(patience=8))
    'stopped: no progress on the validation rows for 8 validations'
    """
    seconds = round(config.time_budget or 0, 1)
    of = f" of {seconds:g} s" if seconds else ""  # nothing is left for training where preparation took it all
    words = {
        "patience": f"no progress on the validation rows for {config.patience} validations",
        "time_budget": f"the time budget{of} is spent",
        "interrupted": "interrupted; the best model so far is kept",
    }
    return f"stopped: {words[reason]}"


def seconds_left(config: TrainingConfig, step: int, seconds: float, rate: float) -> float:
    """Until the last step at this rate, or until the time budget ends, whichever comes first.

    >>> seconds_left(TrainingConfig(steps=100, time_budget=30), step=50, seconds=10, rate=1.0)
    20
    """
    needed = (config.steps - step) / max(rate, 1e-9)
    return needed if config.time_budget is None else max(0, min(needed, config.time_budget - seconds))
