"""Everything about a training run that is not the model or the data."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args

Optimizer = Literal["adam", "adamw", "muon"]
Accelerator = Literal["auto", "cpu", "cuda"]
Compile = Literal["auto", "fuse", "off"]


@dataclass(frozen=True)
class TrainingConfig:
    """How to train. A step is one update of the weights; a batch is shared between all processes."""

    steps: int = 10_000
    """Number of updates."""
    batch_size: int = 256
    """Rows per update, over all processes together; a smaller table is used whole."""
    learning_rate: float = 1e-3
    """Peak learning rate, reached after the warm-up."""
    optimizer: Optimizer = "adam"
    """Adam with an L2 penalty ("adam") or with decoupled weight decay ("adamw"), or orthogonal steps for the matrices
    of networks ("muon", see `Muon`), which takes far fewer of them where networks are deep."""
    weight_decay: float = 0.0
    """Strength of the penalty or decay; 0 = none."""
    warmup_steps: int = 200
    """Updates over which the learning rate rises linearly from 0 to its peak."""
    final_fraction: float = 0.01
    """Fraction of the peak learning rate that the cosine decay reaches at the last update; 1 = constant."""
    clip_norm: float = 5.0
    """Largest norm of the whole gradient; 0 = no clipping."""
    ema_decay: float = 0.999
    """Decay of the averaged weights, which are validated and saved; 0 = no averaging."""
    validate_every: int = 500
    """Updates between validations (there is one before the first and one after the last update, too)."""
    validation_rows: int = 10_000
    """At most so many rows, drawn once, are used for validation."""
    patience: int = 0
    """Validations without improvement before the run stops; 0 = never."""
    checkpoint_every: int = 1000
    """Updates between resume states (every improvement writes one, too)."""
    checkpoint_seconds: float = 30.0
    """Most seconds between resume states, whatever the updates."""
    log_every: int = 20
    """Updates between lines of metrics.jsonl; on a GPU also between looks for non-finite numbers."""
    time_budget: float | None = None
    """Seconds of training, over all resumed parts together, before the run stops; None = no limit. The learning rate
    has reached its end by then, whatever the steps."""
    seed: int = 0
    """Fixes the order of the batches, the training noise and the validation noise."""
    devices: int = 1
    """Number of processes, one device each."""
    accelerator: Accelerator = "auto"
    """Where to train; "auto" takes the GPU where there is one."""
    threads: int | None = None
    """On a CPU; None = as many as a trial finds fastest, chosen again when the pace collapses."""
    compile: Compile = "auto"
    """Replay the whole step as one CUDA graph where that is possible, one GPU ("auto"); first compile the loss into few
    kernels, too, which takes a minute or two and is worth it for long runs ("fuse"); or neither ("off")."""
    progress: bool = True
    """Show a progress bar."""

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if not isfinite(value) or value < least:
                raise ValueError(f"{name}: got {value}; expected at least {least}")
        for name, most in {"final_fraction": 1, "ema_decay": 1}.items():
            if getattr(self, name) > most:
                raise ValueError(f"{name}: got {getattr(self, name)}; expected at most {most}")
        for name, choices in {"optimizer": Optimizer, "accelerator": Accelerator, "compile": Compile}.items():
            if getattr(self, name) not in get_args(choices):
                raise ValueError(f"{name}: got {getattr(self, name)!r}; expected one of {', '.join(get_args(choices))}")
        if not (isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(f"learning_rate: got {self.learning_rate}; expected a positive number")
        if self.ema_decay == 1:
            raise ValueError(
                "ema_decay: got 1, which never leaves the initial weights; expected a number below 1, e.g. 0.999"
            )
        if self.time_budget is not None and not self.time_budget > 0:
            raise ValueError(f"time_budget: got {self.time_budget}; expected a positive number of seconds, or None")
        check_threads(self.threads)
        if self.batch_size % self.devices:
            raise ValueError(f"batch_size: got {self.batch_size}; expected a multiple of devices = {self.devices}")


def check_threads(threads: int | None) -> None:
    """A number of threads, or None for whoever asks to choose."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ValueError(f"threads: got {threads!r}; expected a positive integer, or None to choose by measuring")


_AT_LEAST = {
    "steps": 1,
    "batch_size": 1,
    "weight_decay": 0,
    "warmup_steps": 0,
    "final_fraction": 0,
    "clip_norm": 0,
    "ema_decay": 0,
    "validate_every": 1,
    "validation_rows": 1,
    "patience": 0,
    "checkpoint_every": 1,
    "checkpoint_seconds": 0,
    "log_every": 1,
    "seed": 0,
    "devices": 1,
}
