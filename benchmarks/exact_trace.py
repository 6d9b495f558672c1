"""A training step of a continuous flow of sets: exact divergence or Hutchinson's, gradients by steps or the adjoint.

python -m benchmarks.exact_trace --device cuda          # writes results/exact-trace-cuda.json
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from tessella import records
from tessella.bijections import ContinuousFlow
from tessella.bijections.continuous import Gradients, Trace
from tessella.contracts import Batch
from tessella.data import SetShape
from tessella.densities.sets import ContinuousSetConfig, GaussianBaseConfig
from tessella.models import SetFlowConfig
from tessella.models.sets import SemiDiscreteSets

SHAPE = SetShape(items=765, least=4, most=4)
GOAL = 3.0  # exact over Hutchinson's
WAYS: list[tuple[Gradients, Trace]] = [
    ("steps", "exact"),
    ("steps", "hutchinson"),
    ("adjoint", "exact"),
    ("adjoint", "hutchinson"),
]


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


def flows(model: nn.Module) -> list[ContinuousFlow]:
    """Its continuous flows."""
    return [part for part in model.modules() if isinstance(part, ContinuousFlow)]


def seconds(steps: list[Callable[[], None]], options: argparse.Namespace) -> list[float]:
    """Of each, the median over repeats in which they take turns."""
    taken: list[list[float]] = [[] for _ in steps]
    for _ in range(options.repeats):
        for place, step in zip(taken, steps, strict=True):
            began = time.perf_counter()
            step()
            if options.device == "cuda":
                torch.cuda.synchronize()
            place.append(time.perf_counter() - began)
    return [median(times) for times in taken]


def main() -> None:
    """Both traces and both gradients, the same weights and sets; all take turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--flows", type=int, default=2)
    parser.add_argument("--steepness", type=float, default=0.05, help="deviation of the weights that end the field")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    batch, steps, evaluations = sets(options.batch, options.device), [], []
    for gradients, trace in WAYS:
        torch.manual_seed(0)
        density = ContinuousSetConfig(
            GaussianBaseConfig(), options.flows, options.width, trace=trace, gradients=gradients
        )
        model = SetFlowConfig(density=density).build(SHAPE).to(options.device)
        for flow in flows(model):
            nn.init.normal_(flow.field.get_parameter("net.head.weight"), 0, options.steepness)
        steps.append(trained(model, batch))
        steps[-1]()  # what is recorded once is not timed
        evaluations.append([flow.evaluations for flow in flows(model)])
    found: dict[str, dict[str, Any]] = {"steps": {}, "adjoint": {}}
    for (gradients, trace), taken, counts in zip(WAYS, seconds(steps, options), evaluations, strict=True):
        found[gradients][trace] = {"seconds": taken, "evaluations": counts}
        print(f"{gradients}, {trace}: {taken:.4f} s, evaluations forwards {counts}")
    for by in found.values():
        by["ratio"] = by["exact"]["seconds"] / by["hutchinson"]["seconds"]
    record = {
        "dimensions": [SHAPE.most, 6],
        "batch": options.batch,
        "width": options.width,
        "flows": options.flows,
        "goal": GOAL,
        "steepness": options.steepness,
        "threads": torch.get_num_threads(),
        "gradients": found,
        **records.provenance(0),
    }
    records.write(options.results / f"exact-trace-{options.device}.json", record)


if __name__ == "__main__":
    main()
