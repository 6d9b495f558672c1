"""`TabularARGN` without what drawing whole rows does not need.

It learns a single order of the columns, and does not replace rare values for the sake of privacy, which no other method
here does.
"""

from typing import Any

import pandas as pd

from benchmarks.peers.methods.argn import LIBRARIES, fit
from benchmarks.peers.methods.exchange import Fitted, Task, serve


def fit_one_order(train: pd.DataFrame, task: Task, **settings: Any) -> Fitted:
    return fit(train, task, value_protection=False, enable_flexible_generation=False, **settings)


if __name__ == "__main__":
    serve(fit_one_order, *LIBRARIES)
