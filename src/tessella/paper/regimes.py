"""When do cells help? The same blocks with and without cells, on modes of any number and separation, at any budget.

tessella reproduce when-cells-help --results results --jobs 16 --minutes 4 --accelerator cuda
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing import TimeoutError, get_context
from pathlib import Path
from typing import Any

import torch
from torch import Generator

from tessella import records
from tessella.configs import to_json
from tessella.data import Rows
from tessella.densities import DensityConfig, DisjointMixtureConfig
from tessella.paper.modes import Modes
from tessella.paper.toys import FittedDensity, choose, without_cells
from tessella.training import TrainingConfig
from tessella.training.config import Accelerator, Compile

DIMS, MODES, SEPARATIONS = (2, 4, 8, 16, 32), (8, 64, 256), (2.0, 4.0, 8.0, 16.0)
CELLS = (1, 8, 64, 256)
SOME = (2, 8, 32)  # dimensions, where time is dear
APART, MANY = 8.0, 64  # the separation, and the number of cells and modes, of what varies something else
BLOCKS = DisjointMixtureConfig(blocks=4, component_blocks=4, squashing=8.0, transform="spline")
TRAINING = TrainingConfig(batch_size=512, log_every=100, progress=False, threads=1)
ROWS = {"train": 100_000, "validation": 5_000, "test": 20_000}
VALIDATIONS = 5  # of a run: few, as they cost time; the last is at its end
LONG = 100_000  # steps, which are worth a minute of compilation on a GPU


@dataclass(frozen=True)
class Question:
    """One cell of the grid: what is drawn, how many cells learn it (0: a coupling flow without), for how long."""

    data: Modes
    cells: int
    steps: int

    @property
    def name(self) -> str:
        """Of its record."""
        data = self.data
        bent = "-bent" if data.bent else ""
        seed = f"-seed{data.seed}" if data.seed else ""
        return f"d{data.dim}-m{data.modes}-s{data.separation:g}{bent}-k{self.cells}-{self.steps}{seed}"

    def model(self) -> DensityConfig:
        """Without cells, one of the size of a mixture with `MANY` cells, or nearly so."""
        if self.cells:
            return replace(BLOCKS, cells=self.cells)
        return without_cells(replace(BLOCKS, cells=MANY), self.data.dim)


def grid(seed: int = 0) -> list[Question]:
    """All questions, the most telling first; none twice."""

    def ask(dims: Any, modes: Any, separations: Any, cells: Any, steps: int, bent: bool = False) -> list[Question]:
        data = [Modes(d, m, s, bent, seed) for d in dims for m in modes for s in separations]
        return [Question(one, k, steps) for one in data for k in cells]

    both, others = (0, MANY), tuple(k for k in CELLS if k != MANY)
    asked = [
        *ask(DIMS, MODES, [APART], both, 1_000),  # modes and dimensions
        *ask(DIMS, [1], [APART], both, 1_000),  # nothing for cells to find
        *ask(SOME, [MANY], [APART], both, 10_000),  # budget
        *ask(DIMS, MODES, SEPARATIONS, both, 1_000),  # separation
        *ask(DIMS, MODES, [APART], others, 1_000),  # number of cells
        *ask(DIMS, MODES, [APART], both, 10_000),
        *ask(DIMS, MODES, [APART], both, 1_000, bent=True),  # modes that are no Gaussians
        *ask(SOME, MODES, [APART], others, 10_000),
        *ask(SOME, [MANY], [APART], both, LONG),
    ]
    return list(dict.fromkeys(asked))


def answer(question: Question, accelerator: Accelerator, folder: Path) -> dict[str, Any]:
    """The record: KL(truth | model) in nats on the same test rows, at the learning rate that validation rows chose.

    KL = mean of log p(x) - log q(x); p is known, so this is what is left to learn, comparable between data.
    """
    rows = draw(question.data)
    every = -(-question.steps // VALIDATIONS)
    training = replace(TRAINING, steps=question.steps, validate_every=every, checkpoint_every=question.steps)
    compiled: Compile = "fuse" if question.steps >= LONG else "auto"
    training = replace(training, seed=question.data.seed, accelerator=accelerator, compile=compiled)
    chosen = choose(question.model(), rows, training, folder / question.name)
    kl = divergence(question.data, chosen.best, rows["test"])
    return {
        "data": asdict(question.data),
        "cells": question.cells,
        "steps": question.steps,
        "kl": float(kl.mean()),
        "kl_stderr": float(kl.std() / len(kl) ** 0.5),
        "test_rows": len(kl),
        "method": "disjoint mixture" if question.cells else "coupling flow",
        **chosen.summary(),
        "training": to_json(chosen.best.training),
    }


def draw(data: Modes) -> dict[str, Rows]:
    """Seeded rows by split."""
    generator = Generator().manual_seed(data.seed + 1)
    return {split: Rows(data.rows(count, generator)) for split, count in ROWS.items()}


@torch.no_grad()
def divergence(data: Modes, fitted: FittedDensity, rows: Rows) -> torch.Tensor:
    """log p(x) - log q(x) of every row, float64 on the CPU."""
    (x,) = rows.tensors
    device = next(fitted.density.parameters()).device
    return data.log_prob(x) - fitted.density.log_prob(x.to(device)).double().cpu()


def study(
    questions: list[Question], folder: Path, results: Path, jobs: int, minutes: float, accelerator: Accelerator
) -> Iterator[tuple[Question, dict[str, Any]]]:
    """Answer what has no record in `results` yet, in this order, by `jobs` processes; each as it is answered.

    After so many minutes (0: never) the processes are ended. What they were at is no answer; the next call continues
    it from its folder.
    """
    open_questions = [question for question in questions if not record_path(results, question).exists()]
    until = time.monotonic() + 60 * minutes
    work = [(question, accelerator, folder) for question in open_questions]
    with get_context("spawn").Pool(jobs, torch.set_num_threads, (1,)) as pool, suppress(StopIteration, TimeoutError):
        answers = pool.imap_unordered(_answer, work)
        while True:
            question, record = answers.next(until - time.monotonic() if minutes else None)
            record |= records.provenance(question.data.seed)  # here, where the command was typed
            records.write(record_path(results, question), record)
            yield question, record


def _answer(work: tuple[Question, Accelerator, Path]) -> tuple[Question, dict[str, Any]]:
    return work[0], answer(*work)


def record_path(results: Path, question: Question) -> Path:
    """Where the answer lies."""
    return results / "regimes" / f"{question.name}.json"
