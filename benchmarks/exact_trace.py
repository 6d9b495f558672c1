"""A training step of a continuous flow of sets with the exact divergence against one with Hutchinson's estimate.

python -m benchmarks.exact_trace --device cuda          # writes results/exact-trace.json
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch

from tessella import records
from tessella.contracts import Batch
from tessella.data import SetShape
from tessella.densities.sets import ContinuousSetConfig, GaussianBaseConfig
from tessella.models import SetFlowConfig
from tessella.models.sets import SemiDiscreteSets

SHAPE = SetShape(items=765, least=4, most=4)
GOAL = 3.0


def sets(number: int, device: str) -> Batch:
    """Random ones."""
    items = torch.rand(number, SHAPE.items).topk(SHAPE.most).indices.to(device)
    return items, torch.ones_like(items, dtype=torch.bool)


def trained(model: SemiDiscreteSets, batch: Batch) -> Callable[[], None]:
    """One update: loss, gradients, Adam; the learning rate is 0, so that all updates are of the same field."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0)

    def step() -> None:
        optimizer.zero_grad()
        model.loss(*batch).backward()
        optimizer.step()

    return step


def seconds(steps: list[Callable[[], None]], repeats: int, device: str) -> list[float]:
    """Of each, the median over repeats in which they take turns."""
    taken: list[list[float]] = [[] for _ in steps]
    for repeat in range(repeats + 1):
        for place, step in zip(taken, steps, strict=True):
            began = time.perf_counter()
            step()
            if device == "cuda":
                torch.cuda.synchronize()
            if repeat:  # the first is a warm-up
                place.append(time.perf_counter() - began)
    return [median(times) for times in taken]


def main() -> None:
    """Both traces, the same weights and sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--flows", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    batch, found = sets(options.batch, options.device), {}
    for adjoint in (True, False):
        steps = []
        for trace in ("exact", "hutchinson"):
            torch.manual_seed(0)
            density = ContinuousSetConfig(
                GaussianBaseConfig(), options.flows, options.width, trace=trace, adjoint=adjoint
            )
            model = SetFlowConfig(density=density).build(SHAPE)
            for flow in model.density.bijection.parts:  # type: ignore[union-attr]  # there are some
                torch.nn.init.normal_(flow.field.net.head.weight, 0, 0.05)
            steps.append(trained(model.to(options.device), batch))
        exact, hutchinson = seconds(steps, options.repeats, options.device)
        name = "adjoint" if adjoint else "through the steps"
        found[name] = {"exact": exact, "hutchinson": hutchinson, "ratio": exact / hutchinson}
        print(f"{name}: {exact:.4f} s exact, {hutchinson:.4f} s by Hutchinson's estimate, {exact / hutchinson:.2f}x")
    record = {
        "dimensions": [SHAPE.most, 6],
        "batch": options.batch,
        "width": options.width,
        "flows": options.flows,
        "goal": GOAL,
        "seconds": found,
        **records.provenance(0),
    }
    records.write(options.results / "exact-trace.json", record)


if __name__ == "__main__":
    main()
