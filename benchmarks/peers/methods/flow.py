"""tessella's `TabularFlow`, as it comes."""

import pandas as pd

from benchmarks.peers.methods.exchange import Fitted, Task, serve
from tessella import TabularFlow


def fit(train: pd.DataFrame, task: Task) -> Fitted:
    flow = TabularFlow(
        time_budget=60 * task.minutes, threads=task.threads, device="cpu", random_state=task.seed, progress=False
    ).fit(train)
    about = {"model": flow.density_, "exact": flow.exact_, "steps": flow.n_iter_, "stopped": flow.stopped_}
    return Fitted(flow.sample, flow.score_samples if flow.exact_ else None, about)


if __name__ == "__main__":
    serve(fit, "torch")
