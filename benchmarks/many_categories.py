"""Memory of `TabularFlow` on a column of 20,000 categories and 200,000 rows; writes results/many-categories.json.

python -m benchmarks.many_categories
"""

import argparse
import resource
from pathlib import Path

import numpy as np

from tessella import TabularFlow, records

COMMON = 1.1  # categories are drawn with frequency 1 / rank^1.1


def table(rows: int, categories: int, seed: int) -> np.ndarray:
    """A name, drawn by rank, and two columns that depend on it."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, categories + 1) ** COMMON
    name = rng.choice(categories, rows, p=share / share.sum())
    name[:categories] = np.arange(categories)  # all of them occur
    group = name % 7
    noisy = np.where(rng.random(rows) < 0.8, group % 3, rng.integers(0, 3, rows))
    return np.stack([name, group, noisy], 1).astype(str)


def main() -> None:
    """Fit, score, sample; peak memory and held-out likelihoods."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--categories", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    from tessella.estimators.overview import gather

    rows = table(options.rows, options.categories, seed=0)
    flow = TabularFlow(time_budget=options.seconds, test_fraction=0.1, samples=64, device="cpu", random_state=0).fit(
        rows
    )
    flow.score_samples(rows[:1000])
    flow.sample(1000)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    overview = gather(flow, rows)
    record = {
        "rows": options.rows,
        "categories": options.categories,
        "peak_gigabytes": round(gigabytes, 3),
        "steps": flow.n_iter_,
        "seconds": overview.seconds,
        "test_rows": overview.scored_rows,
        "nll": {one["name"]: [round(one["nll"], 4), round(one["error"], 4)] for one in overview.likelihoods},
        **records.provenance(0),
    }
    records.write(options.results / "many-categories.json", record)
    print(f"peak {gigabytes:.2f} GB;", record["nll"])


if __name__ == "__main__":
    main()
