"""The line that people watch."""

from datetime import timedelta
from typing import Self

from tqdm import tqdm

from tessella.training.config import TrainingConfig


class Progress:
    """A bar with the loss (mean since the last log), the best validation, steps per second, and the time left."""

    def __init__(self, config: TrainingConfig, step: int, seconds: float, visible: bool):
        self.config = config
        self._first = (step, seconds)
        self._loss = ""
        form = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}{postfix}"
        self._bar = tqdm(total=config.steps, initial=step, dynamic_ncols=True, bar_format=form) if visible else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, step: int, seconds: float, best: float, loss: float | None) -> None:
        """Move to `step`, reached after so many seconds of training in total."""
        if self._bar is None:
            return
        if loss is not None:
            self._loss = f"loss {loss:.4f}, "
        rate = (step - self._first[0]) / max(seconds - self._first[1], 1e-9)
        left = timedelta(seconds=round(seconds_left(self.config, step, seconds, rate)))
        self._bar.set_postfix_str(f"{self._loss}best {best:.4f}, {rate:.3g} steps/s, {left} left", refresh=False)
        self._bar.update(step - self._bar.n)


def seconds_left(config: TrainingConfig, step: int, seconds: float, rate: float) -> float:
    """Until the last step at this rate, or until the time budget ends, whichever comes first.

    >>> seconds_left(TrainingConfig(steps=100, time_budget=30), step=50, seconds=10, rate=1.0)
    20
    """
    needed = (config.steps - step) / max(rate, 1e-9)
    return needed if config.time_budget is None else max(0, min(needed, config.time_budget - seconds))
