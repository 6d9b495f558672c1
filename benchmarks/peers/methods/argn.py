"""mostlyai-engine's `TabularARGN`, as it comes: rare values protected, any order of the columns, its own encodings.

Size, batches, learning rate and stopping are its own. The minutes are for training alone: it analyses and encodes the
rows before.
"""

from typing import Any

import pandas as pd
import torch
from mostlyai.engine import TabularARGN

from benchmarks.peers.methods.exchange import Fitted, Task, serve

LIBRARIES = ("mostlyai-engine", "torch")
PROGRESS = "ModelStore/model-data/progress-messages.csv"


def fit(train: pd.DataFrame, task: Task, **settings: Any) -> Fitted:
    """With some settings other than its own."""
    torch.set_num_threads(task.threads)
    argn = TabularARGN(max_training_time=task.minutes, device="cpu", random_state=task.seed, **settings).fit(train)
    epochs = float(pd.read_csv(f"{argn.workspace_path_}/{PROGRESS}")["epoch"].max())
    return Fitted(lambda rows: argn.sample(n_samples=rows), about={"epochs": epochs, "settings": settings})


if __name__ == "__main__":
    serve(fit, *LIBRARIES)
