"""mostlyai-engine's `TabularARGN`.

It has its default size, encodings and stopping. The minutes are for its training alone: to analyse and encode the rows
takes it longer. Two defaults are changed in its favour: it does not replace rare values for the sake of privacy, which
no other method here does, and it learns a single order of the columns, which is all that drawing whole rows takes.
"""

import pandas as pd
import torch
from mostlyai.engine import TabularARGN

from benchmarks.peers.methods.exchange import Fitted, Task, serve


def fit(train: pd.DataFrame, task: Task) -> Fitted:
    torch.set_num_threads(task.threads)
    argn = TabularARGN(
        max_training_time=task.minutes,
        value_protection=False,
        enable_flexible_generation=False,
        device="cpu",
        random_state=task.seed,
    ).fit(train)
    return Fitted(lambda rows: argn.sample(n_samples=rows), about={"model": "MOSTLY_AI/Medium, one order"})


if __name__ == "__main__":
    serve(fit, "mostlyai-engine", "torch")
