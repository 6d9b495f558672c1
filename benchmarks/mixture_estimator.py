"""MixtureFlow as it comes against scikit-learn's GaussianMixture with the number of components that suits it best.

    python -m benchmarks.mixture_estimator --data power                # twenty minutes on two cores
    python -m benchmarks.mixture_estimator --data breast-cancer --seeds 5

Both see the same training rows and are scored on the same test rows. MixtureFlow has its defaults, and five minutes at
most. Gaussian mixtures have full covariances and run until they converge (tol 1e-4), with 1, 2, 4, ..., 128 components
fitted to nine tenths of the training rows; the other tenth chooses the number, and with it one more is fitted to all
training rows. What is scored is that one or the one of nine tenths, whichever is better on the *test* rows: the choice
is the Gaussians' to win. Columns have mean 0 and deviation 1 over the training rows. Tables that come without a split
are split anew for every seed.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from tessella import MixtureFlow, records
from tessella.data import load_vectors
from tessella.data.locate import find
from tessella.data.reading import read_compact

COMPONENTS = (1, 2, 4, 8, 16, 32, 64, 128)
ROWS = 100_000
Split = tuple[np.ndarray, np.ndarray]  # training and test rows


@dataclass(frozen=True)
class Data:
    """A table of real numbers, by seed, and what was done to it."""

    split: Callable[[int], Split]
    about: str


def _power(seed: int) -> Split:
    table = load_vectors("power")
    train, test = (part.tensors[0][:ROWS].double().numpy() for part in (table.train, table.test))
    return train, test


def _shuffled(rows: np.ndarray, seed: int, test: float = 0.2) -> Split:
    order = np.random.default_rng(seed).permutation(len(rows))
    tested = round(test * len(rows))
    return rows[order[tested:]], rows[order[:tested]]


def _breast_cancer(seed: int) -> Split:
    rows = load_breast_cancer().data
    return _shuffled(rows[(rows != 0).all(1)], seed)


def _wine(seed: int) -> Split:
    """Columns are rounded, each to some digit: noise of the width of one undoes it."""
    rows = load_wine().data
    steps = [next(10.0**-d for d in range(9) if np.allclose(column, column.round(d))) for column in rows.T]
    return _shuffled(rows + np.random.default_rng(seed).random(rows.shape) * steps, seed)


def _miniboone(seed: int) -> Split:
    parts = load_vectors("miniboone").parts.values()
    return _shuffled(torch.cat([part.tensors[0] for part in parts]).double().numpy(), seed)


def _covertype(seed: int) -> Split:
    found = find(("covtype.npz.xz",), archive="")
    if found is None:
        raise FileNotFoundError("covtype.npz.xz: not found; expected it in the folder TESSELLA_DATA")
    whole = read_compact(found[0])[1]["C"]
    dense = [j for j, column in enumerate(whole.T) if len(np.unique(column)) > np.ptp(column) / 2]
    train, test = _shuffled(whole[:, dense] + np.random.default_rng(seed).random((len(whole), len(dense))), seed)
    return train[:ROWS], test[:ROWS]


def _standardised(train: np.ndarray, test: np.ndarray) -> Split:
    mean, scale = train.mean(0), train.std(0)
    return (train - mean) / scale, (test - mean) / scale


DATA = {
    "power": Data(_power, "the first 100,000 training and 100,000 test rows, noise drawn anew"),
    "covertype": Data(_covertype, "the nine columns of most whole numbers in their range, with uniform noise"),
    "miniboone": Data(_miniboone, "the 1,523 rows that are at hand, a fifth of them for the test"),
    "breast-cancer": Data(_breast_cancer, "without the 13 rows in which six columns are 0; a fifth for the test"),
    "wine": Data(_wine, "with uniform noise between one value and the next of each column; a fifth for the test"),
}


def gaussians(train: np.ndarray, test: np.ndarray, seed: int) -> dict[str, Any]:
    """The Gaussian mixture whose number of components validation rows choose, and all that were fitted."""
    order = np.random.default_rng(seed).permutation(len(train))
    held_out, rest = train[order[: len(train) // 10]], train[order[len(train) // 10 :]]
    start, scores = time.perf_counter(), {}
    for components in (k for k in COMPONENTS if k <= len(rest) // 2):
        model = _gaussian_mixture(rest, components, seed)
        scores[components] = -float(model.score(held_out)), -float(model.score(test))
    best = min(scores, key=lambda k: scores[k][0])
    again = -float(_gaussian_mixture(train, best, seed).score(test))
    return {
        "nll": min(again, scores[best][1]),
        "seconds": time.perf_counter() - start,
        "components": best,
        "by_components": {k: {"validation": v, "test": t} for k, (v, t) in scores.items()},
    }


def _gaussian_mixture(rows: np.ndarray, components: int, seed: int) -> GaussianMixture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(components, tol=1e-4, max_iter=1000, random_state=seed).fit(rows)


def flow(train: np.ndarray, test: np.ndarray, seed: int) -> dict[str, Any]:
    """MixtureFlow as it comes: five minutes at most, as many threads as are fastest."""
    start = time.perf_counter()
    model = MixtureFlow(random_state=seed, device="cpu", progress=False).fit(train)
    return {
        "seconds": time.perf_counter() - start,
        "nll": -float(model.score(test)),
        "components": model.components_,
        "kept": model.density_,
        "validation": model.best_validation_,
        "validation_of_its_gaussian_mixture": model.initial_validation_,
        "steps": model.n_iter_,
        "stopped": model.stopped_,
        "threads": model.threads_,
    }


METHODS = {"GaussianMixture": gaussians, "MixtureFlow": flow}


def summary(runs: list[dict[str, Any]], load: float) -> dict[str, Any]:
    """Mean and deviation over seeds, the runs themselves, and where they come from."""
    nll = [run["nll"] for run in runs]
    deviation = stdev(nll) if len(nll) > 1 else None
    machine = {"load_before": round(load, 1), "load_after": round(os.getloadavg()[0], 1)}
    return {"nll": mean(nll), "deviation_over_seeds": deviation, "runs": runs, **machine, **records.provenance(0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=DATA, default="power")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="the others' numbers stay")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    args = parser.parse_args()
    path = args.out / f"mixture-estimator-{args.data}.json"
    splits = [_standardised(*DATA[args.data].split(seed)) for seed in range(args.seeds)]
    found = json.loads(path.read_text())["methods"] if path.exists() else {}
    for name in args.methods:
        load = os.getloadavg()[0]
        found[name] = summary([METHODS[name](*split, seed) for seed, split in enumerate(splits)], load)
        print(f"{name:16} NLL {found[name]['nll']:.3f} nats; {[round(run['nll'], 3) for run in found[name]['runs']]}")
    train, test = splits[0]
    pairs = zip(*([run["nll"] for run in found[name]["runs"]] for name in METHODS), strict=True)
    record = {
        "data": args.data,
        "about": DATA[args.data].about,
        "rows": {"train": len(train), "test": len(test), "columns": train.shape[1]},
        "methods": found,
        "MixtureFlow_is_better_by": [gaussian - flow for gaussian, flow in pairs],
        **records.provenance(0),
    }
    records.write(path, record)


if __name__ == "__main__":
    main()
