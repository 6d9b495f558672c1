"""MixtureFlow against scikit-learn's GaussianMixture: the same rows of POWER, the same number of components.

    python -m benchmarks.mixture_estimator               # three seeds, about four minutes on one core
    python -m benchmarks.mixture_estimator --steps 20000

Both see the same training rows (MixtureFlow holds a tenth of them out to stop in time) and are scored on the same test
rows. The Gaussian mixture has full covariances and is run until it converges; the rest are defaults of scikit-learn.
Steps are fixed rather than seconds, so that another machine repeats the numbers; seeds are several, as runs differ.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from sklearn.mixture import GaussianMixture

from tessella import MixtureFlow, records
from tessella.data import load_vectors

SEEDS = (0, 1, 2)


def measured(build: Callable[[int], Any], train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """NLL of the test rows and seconds of fitting, by seed and over the seeds."""
    nll, seconds = [], []
    for seed in SEEDS:
        start = time.perf_counter()
        model = build(seed).fit(train)
        seconds.append(time.perf_counter() - start)
        nll.append(-float(model.score(test)))
    return {
        "nll": mean(nll),
        "deviation_over_seeds": stdev(nll),
        "by_seed": nll,
        "seconds": round(mean(seconds), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--components", type=int, default=32)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--out", type=Path, default=Path("results/mixture-power-estimator.json"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    table = load_vectors("power")
    train, test = (part.tensors[0][: args.rows].numpy() for part in (table.train, table.test))
    settings = {"max_steps": args.steps, "device": "cpu", "progress": False}
    methods = {
        "GaussianMixture": lambda seed: GaussianMixture(args.components, max_iter=1000, random_state=seed),
        "MixtureFlow": lambda seed: MixtureFlow(args.components, random_state=seed, **settings),
    }
    found = {name: measured(build, train, test) for name, build in methods.items()}
    record = {
        "data": table.name,
        "partial": f"the first {len(train):,} training and {len(test):,} test rows",
        "rebuilt": table.rebuilt,
        "components": args.components,
        "steps": args.steps,
        "seeds": SEEDS,
        "methods": found,
        **records.provenance(SEEDS[0]),
    }
    records.write(args.out, record)
    for name, said in found.items():
        print(f"{name:16} NLL {said['nll']:.3f} +- {said['deviation_over_seeds']:.3f} nats, {said['seconds']} s each")


if __name__ == "__main__":
    main()
