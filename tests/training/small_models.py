"""Models small enough to train in a test, and runs of them that can happen in a process of their own."""

import os
import signal
from pathlib import Path

import torch
from torch import Tensor, nn

from tessella.data import Rows
from tessella.training import FitResult, TrainingConfig, fit


class Gaussian(nn.Module):
    """-log N(x; m, e^2s), column by column: deterministic, and its optimum is known."""

    def __init__(self, dim: int = 2):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(dim, dtype=torch.float64))
        self.log_scale = nn.Parameter(torch.zeros(dim, dtype=torch.float64))
        self.register_buffer("initialized", torch.zeros((), dtype=torch.int64))

    def nll(self, batch: Tensor) -> Tensor:
        z = (batch - self.mean) * (-self.log_scale).exp()
        return (z.square() / 2 + self.log_scale).sum(-1)

    def loss(self, batch: Tensor) -> Tensor:
        return self.nll(batch).mean()

    def initialize(self, batch: Tensor) -> None:
        self.initialized += 1


class Noisy(nn.Module):
    """A denoiser with noise and dropout: nothing about it repeats unless the generators do."""

    def __init__(self) -> None:
        super().__init__()
        single = torch.float32  # also where the tests' default is double
        first, wide, last = (nn.Linear(a, b, dtype=single) for a, b in ((3, 16), (16, 16), (16, 3)))
        self.net = nn.Sequential(first, nn.ReLU(), nn.Dropout(0.2), wide, nn.ReLU(), last)
        self.gain = nn.Parameter(torch.ones((), dtype=single))

    def nll(self, batch: Tensor) -> Tensor:
        return (self.gain * self.net(batch + torch.randn_like(batch)) - batch).square().sum(-1)

    def loss(self, batch: Tensor) -> Tensor:
        return self.nll(batch).mean()

    def initialize(self, batch: Tensor) -> None:
        self.gain.copy_(batch.std() + 0.01 * torch.randn_like(self.gain))


def gaussian_rows(number: int = 64, dim: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return 3 + 2 * torch.randn(number, dim, generator=generator, dtype=torch.float64)


def noisy_rows(number: int) -> Tensor:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(number, 3, generator=generator, dtype=torch.float32)


def gaussian_source(number: int = 64, dim: int = 2) -> Rows:
    return Rows(gaussian_rows(number, dim))


def noisy_source(number: int) -> Rows:
    return Rows(noisy_rows(number))


NOISY = TrainingConfig(
    steps=300,
    batch_size=16,
    learning_rate=3e-3,
    warmup_steps=10,
    ema_decay=0.95,
    validate_every=12,
    checkpoint_every=7,
    log_every=5,
    accelerator="cpu",
    progress=False,
)


def fit_noisy(folder: Path, config: TrainingConfig = NOISY) -> FitResult:
    """The same run whatever was drawn before, in whichever process."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = Noisy()
    return fit(model, noisy_source(50), noisy_source(30), config, folder, about={"model": "noisy"})


def fit_noisy_until_killed(folder: Path, config: TrainingConfig, writes: int, before: bool) -> None:
    """Die by SIGKILL at a given write to the folder, just before or just after the file takes its place."""
    replace, done = os.replace, 0

    def deadly_replace(source: Path, target: Path) -> None:
        nonlocal done
        done += 1
        if before and done == writes:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)
        if done == writes:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = deadly_replace
    fit_noisy(folder, config)
