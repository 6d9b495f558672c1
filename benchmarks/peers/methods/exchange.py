"""What a competitor is given in a folder, and what it leaves there."""

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TRAIN, HELD_OUT, SAMPLED = "train.parquet", "held_out.parquet", "sampled.parquet"
TASK, REPORT = "task.json", "report.json"


@dataclass(frozen=True)
class Task:
    """How long a method may train, on how many threads."""

    minutes: float
    threads: int
    seed: int


@dataclass(frozen=True)
class Fitted:
    """A method that has seen the training rows.

    Attributes:
        sample: so many new rows.
        score: log-likelihood of each row in nats, where the method has one.
        about: what it chose.
    """

    sample: Callable[[int], pd.DataFrame]
    score: Callable[[pd.DataFrame], np.ndarray] | None = None
    about: dict[str, Any] = field(default_factory=dict)


def serve(fit: Callable[[pd.DataFrame, Task], Fitted], *libraries: str) -> None:
    """Fit the rows in the folder that the command line names, draw as many as are held out, write what was measured."""
    folder = Path(sys.argv[1])
    task = Task(**json.loads((folder / TASK).read_text()))
    train, held_out = (pd.read_parquet(folder / name) for name in (TRAIN, HELD_OUT))
    start, busy = time.perf_counter(), time.process_time()
    fitted = fit(train, task)
    trained, busy = time.perf_counter(), time.process_time() - busy
    sampled = fitted.sample(len(held_out))
    drawn = time.perf_counter()
    sampled[list(train)].to_parquet(folder / SAMPLED, index=False)
    report = {
        "fit_seconds": trained - start,
        "fit_cpu_seconds": busy,  # fewer than the seconds: others had the processor meanwhile
        "rows_per_second": len(sampled) / (drawn - trained),
        "likelihood": _likelihood(fitted, train, held_out),
        "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "about": fitted.about,
        "versions": {library: version(library) for library in libraries},
    }
    (folder / REPORT).write_text(json.dumps(report))


def _likelihood(fitted: Fitted, train: pd.DataFrame, held_out: pd.DataFrame) -> dict[str, float] | None:
    """Mean negative log-likelihood of the held-out rows whose categories occur in training, and its standard error."""
    if fitted.score is None:
        return None
    for name in train.select_dtypes(exclude=["number", "datetime"]):
        held_out = held_out[held_out[name].isin(train[name])]
    values = -np.asarray(fitted.score(held_out), dtype=float)
    return {"nll": values.mean(), "error": values.std(ddof=1) / len(values) ** 0.5, "rows": len(values)}
