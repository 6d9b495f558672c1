"""mostlyai-engine's `TabularARGN`, with settings that suit this comparison better than its defaults.

It does not replace rare values for the sake of privacy, which no other method here does; it learns a single order of
the columns, which is all that drawing whole rows takes; and numbers of few values are drawn from among these, where by
default it draws from the range between two quantiles. Its size, batches, learning rate and stopping are its own. The
minutes are for training alone: it analyses and encodes the rows before.
"""

from typing import Any

import pandas as pd
import torch
from mostlyai.engine import TabularARGN

from benchmarks.peers.methods.exchange import Fitted, Task, serve

LIBRARIES = ("mostlyai-engine", "torch")
FEW = 1000  # different values
PROGRESS = "ModelStore/model-data/progress-messages.csv"


def learn(train: pd.DataFrame, task: Task, **settings: Any) -> Fitted:
    """TabularARGN with some settings, for the minutes of the task."""
    torch.set_num_threads(task.threads)
    argn = TabularARGN(max_training_time=task.minutes, device="cpu", random_state=task.seed, **settings).fit(train)
    epochs = float(pd.read_csv(f"{argn.workspace_path_}/{PROGRESS}")["epoch"].max())
    return Fitted(lambda rows: argn.sample(n_samples=rows), about={"epochs": epochs, "settings": settings})


def encoding(column: "pd.Series[Any]") -> str:
    """What suits a column."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return "TABULAR_DATETIME"
    if not pd.api.types.is_numeric_dtype(column):
        return "TABULAR_CATEGORICAL"
    return "TABULAR_NUMERIC_DISCRETE" if column.nunique() <= FEW else "TABULAR_NUMERIC_AUTO"


def fit(train: pd.DataFrame, task: Task) -> Fitted:
    encodings = {name: encoding(train[name]) for name in train}
    return learn(train, task, value_protection=False, enable_flexible_generation=False, tgt_encoding_types=encodings)


if __name__ == "__main__":
    serve(fit, *LIBRARIES)
