"""What a model must offer to be trained, and what training gives back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from torch import Tensor

StopReason = Literal["steps", "patience", "time_budget", "interrupted"]
"""Named after the `TrainingConfig` field that ended the run; "interrupted" is Ctrl-C. The last two can be resumed."""


@runtime_checkable
class Trainable(Protocol):
    """An `nn.Module` with these three methods. A batch is whatever rows of the training tensor look like, (B, ...).

    Noise comes from torch's global generators, which `fit` seeds, saves and restores; other generators (Python's,
    numpy's) are not saved, and a run that draws from them does not resume exactly.
    """

    def loss(self, batch: Tensor) -> Tensor:
        """Scalar, differentiable, the mean over the rows. With static shapes and no host sync it can be captured."""

    def nll(self, batch: Tensor) -> Tensor:
        """Negative log-likelihood, or a bound on it, of every row: (B,). Called without gradients."""

    def initialize(self, batch: Tensor) -> None:
        """Data-dependent initialisation, called once before the first step; a model without one does nothing here."""


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
