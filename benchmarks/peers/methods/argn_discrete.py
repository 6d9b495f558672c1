"""`TabularARGN` of one order, in which numbers of few values are drawn from among these.

By default it draws numbers of more than three digits from the range between two quantiles, which trees notice.
"""

import pandas as pd

from benchmarks.peers.methods.argn import LIBRARIES
from benchmarks.peers.methods.argn_one_order import fit_one_order
from benchmarks.peers.methods.exchange import Fitted, Task, serve

FEW = 1000  # different values


def encoding(column: pd.Series) -> str:
    if pd.api.types.is_datetime64_any_dtype(column):
        return "TABULAR_DATETIME"
    if not pd.api.types.is_numeric_dtype(column):
        return "TABULAR_CATEGORICAL"
    return "TABULAR_NUMERIC_DISCRETE" if column.nunique() <= FEW else "TABULAR_NUMERIC_AUTO"


def fit_discrete(train: pd.DataFrame, task: Task) -> Fitted:
    return fit_one_order(train, task, tgt_encoding_types={name: encoding(train[name]) for name in train})


if __name__ == "__main__":
    serve(fit_discrete, *LIBRARIES)
