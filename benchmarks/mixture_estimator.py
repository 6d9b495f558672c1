"""MixtureFlow against scikit-learn's GaussianMixture: the same rows of POWER, the same number of components.

    python -m benchmarks.mixture_estimator               # about three minutes on one core
    python -m benchmarks.mixture_estimator --seconds 600

Both see the same training rows (MixtureFlow holds a tenth of them out to stop in time) and are scored on the same test
rows. The Gaussian mixture has full covariances and is run until it converges; the rest are defaults of scikit-learn.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.mixture import GaussianMixture

from tessella import MixtureFlow, records
from tessella.data import load_continuous

SEED = 0


def measured(model: Any, train: np.ndarray, test: np.ndarray) -> tuple[dict[str, float], np.ndarray]:
    start = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    scores = model.score_samples(test)
    said = {"nll": -float(scores.mean()), "stderr": float(scores.std(ddof=1) / len(scores) ** 0.5)}
    return said | {"seconds": round(seconds, 1), "steps": int(model.n_iter_)}, scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--components", type=int, default=32)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--out", type=Path, default=Path("results/mixture-power-estimator.json"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    table = load_continuous("power")
    train, test = table.train[: args.rows].numpy(), table.test[: args.rows].numpy()
    models = {
        "GaussianMixture": GaussianMixture(args.components, max_iter=1000, random_state=SEED),
        "MixtureFlow": MixtureFlow(
            args.components, time_budget=args.seconds, device="cpu", random_state=SEED, progress=False
        ),
    }
    found = {name: measured(model, train, test) for name, model in models.items()}
    gain = found["MixtureFlow"][1] - found["GaussianMixture"][1]
    record = {
        "data": table.name,
        "partial": f"the first {len(train):,} training and {len(test):,} test rows",
        "rebuilt": table.rebuilt,
        "components": args.components,
        "methods": {name: said for name, (said, _) in found.items()},
        "gain": {"nats": float(gain.mean()), "stderr": float(gain.std(ddof=1) / len(gain) ** 0.5)},
        **records.provenance(SEED),
    }
    records.write(args.out, record)
    for name, said in record["methods"].items():
        print(f"{name:16} NLL {said['nll']:.3f} +- {said['stderr']:.3f} nats, {said['seconds']} s")


if __name__ == "__main__":
    main()
