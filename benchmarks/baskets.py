"""`SetFlow` on all baskets of Retail or Accidents: held-out likelihood, and items taken out of baskets found again.

    python -m benchmarks.baskets --minutes 4
    python -m benchmarks.baskets --minutes 4 --data accidents

The records are results/baskets-retail.json and baskets-accidents.json; with --device cuda, ...-gpu.json. Beside the
model stand independent items, given their number: for what comes next, they are a list of the most frequent items.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from tessella import SetFlow, records
from tessella.data import ITEMSETS, load_transactions

ASKED = 1000  # test baskets, of each of which an item is taken out
RESULTS = Path("results")


def main() -> None:
    """Fit, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--data", choices=list(ITEMSETS), default="retail")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    rows = [row.tolist() for row in load_transactions(asked.data).rows]
    flow = SetFlow(
        time_budget=60 * asked.minutes, test_fraction=0.1, threads=asked.threads, device=asked.device, random_state=0
    )
    began = time.monotonic()
    flow.fit(rows)
    fitted = time.monotonic() - began
    test = [rows[place] for place in flow.parts_["test"]]
    began = time.monotonic()
    own = flow.score_samples(test)
    scored = time.monotonic() - began
    began = time.monotonic()
    flow.sample(len(test))
    sampled = time.monotonic() - began
    gain = own - flow.independent_scores(test)
    record = records.provenance(seed=0) | {
        "data": asked.data,
        "baskets": len(rows),
        "items": len(flow.items_),
        "model_kind": flow.model_kind_,
        "components": flow.components_,
        "exact": flow.exact_,
        "validation_nll": flow.validation_,
        "skipped": flow.skipped_,
        "stopped": flow.stopped_,
        "rounds": flow.n_iter_,
        "test_baskets": len(test),
        "nll": float(-own.mean()),
        "nll_error": float(own.std() / len(own) ** 0.5),
        "independent_nll": float((gain - own).mean()),
        "gain": float(gain.mean()),
        "gain_error": float(gain.std() / len(gain) ** 0.5),
        "found_again": found_again(flow, test),
        "seconds": {"fit": fitted, "score": scored, "sample": sampled},
    }
    path = RESULTS / f"baskets-{asked.data}{'-gpu' if asked.device == 'cuda' else ''}.json"
    records.write(path, record)
    print(path.read_text())


def found_again(flow: SetFlow, baskets: list[list[int]]) -> dict[str, dict[str, float]]:
    """Shares of the items, one taken out of each basket, among the first 1, 5 and 10 that should come next."""
    draw = np.random.default_rng(0)
    several = [basket for basket in baskets if len(basket) > 1][:ASKED]
    ranks: dict[str, list[int]] = {"model": [], "independent": []}
    for basket in several:
        gone = basket[draw.integers(len(basket))]
        rest = [item for item in basket if item != gone]
        frequent = [item for item in flow.items_[: len(rest) + 10] if item not in rest]
        for name, found in (("model", [item for item, _ in flow.complete(rest, 10)]), ("independent", frequent)):
            ranks[name].append(found.index(gone) if gone in found[:10] else 10)
    return {
        name: {f"first {n}": float(np.mean([rank < n for rank in found])) for n in (1, 5, 10)}
        for name, found in ranks.items()
    }


if __name__ == "__main__":
    main()
