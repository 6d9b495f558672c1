"""What training gives back: how a run went, or where it broke."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

StopReason = Literal["steps", "patience", "time_budget", "interrupted"]
"""Named after the `TrainingConfig` field that ended the run; "interrupted" is Ctrl-C. The last two can be resumed."""


@dataclass(frozen=True)
class FitResult:
    """How a run went: the best validation and its step, the steps done, the seconds they took, why it stopped.

    Weights whose `best_step` is 0 are those that training was given: nothing was learned.
    """

    best_step: int
    best_validation: float
    initial_validation: float
    """Before the first update."""
    steps: int
    seconds: float
    stopped: StopReason
    threads: int = 0
    """Those it ended with; 0 where there was nothing to choose, on a GPU or in several processes."""
    unsaved: str = ""
    """Why the best weights are in the model alone, where the run folder could not be written any more."""


class NonFiniteError(ArithmeticError):
    """A loss or a gradient became NaN or infinite. Nothing computed after that was written to disk.

    Attributes:
        step: the update, counted from 1, in which it happened first.
        parts: "loss", or the names of the parameters whose gradients were not finite.
        checkpoint: the last good resume state.
    """

    def __init__(self, step: int, parts: tuple[str, ...], checkpoint: Path):
        self.step, self.parts, self.checkpoint = step, parts, checkpoint
        super().__init__(step, parts, checkpoint)

    def __str__(self) -> str:
        shown = ", ".join(self.parts[:3]) + (f" and {len(self.parts) - 3} more" if len(self.parts) > 3 else "")
        what = "the loss" if self.parts == ("loss",) else f"the gradient of {shown}"
        return (
            f"step {self.step}: {what} is not finite; the last good state is {self.checkpoint}. Try a smaller "
            "learning_rate or clip_norm, a longer warm-up, or look for extreme values in the training rows"
        )
