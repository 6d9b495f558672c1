"""What a component more costs: disjoint and ordinary mixtures of K flows, as ratios to one component in the same run.

    python -m benchmarks.mixture_cost            # D = 6 and 63, about five minutes
    python -m benchmarks.mixture_cost --rounds 2

Both mixtures have the same conditional coupling flow as their component, told by an embedding which component it is:
the disjoint one evaluates it once for every point, the ordinary one K times. Batches of 1024 rows, float32, one CPU
thread, eager. A training step is loss, backward, clipping and Adam. All K take turns in rounds, so that a disturbance
of the machine hits each of them.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from tessella import checks, records
from tessella.configs import to_json
from tessella.densities import Density, DisjointMixtureConfig, FlowMixture
from tessella.models import VectorModel
from tessella.paper.figures.toys import draw_cost

BATCH = 1024
DIMS = (6, 63)
CONFIG = DisjointMixtureConfig(component_blocks=12, width=128, squashing="root")
MOST_OF_ORDINARY = 64
TO_REACH = {"components": 128, "ratio": 1.25}


def disjoint(components: int, dim: int) -> Density:
    return replace(CONFIG, cells=components).mixture(dim)


def ordinary(components: int, dim: int) -> Density:
    return FlowMixture(CONFIG.component(dim, CONFIG.embedding), components, CONFIG.embedding)


def calls(density: Density, x: torch.Tensor) -> dict[str, Callable[[], Any]]:
    """log_prob without gradients, and a whole training step."""
    model = VectorModel(density)
    model.initialize(torch.randn(8 * BATCH, x.shape[1]))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    @torch.no_grad()
    def log_prob() -> None:
        density.log_prob(x)

    def training_step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model.loss(x).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()

    return {"log_prob": log_prob, "training_step": training_step}


def measure(build: Callable[[int, int], Density], dim: int, most: int, rounds: int) -> dict[str, Any]:
    """Median milliseconds of both calls for K = 1, 2, 4, ..., most, and their ratios to K = 1."""
    torch.manual_seed(0)
    x = torch.randn(BATCH, dim)
    sizes = [2**i for i in range(most.bit_length())]
    every = {components: calls(build(components, dim), x) for components in sizes}
    times: dict[str, dict[int, list[float]]] = {name: {k: [] for k in sizes} for name in ("log_prob", "training_step")}
    for round_ in range(rounds + 1):  # the first is not counted
        for components, pair in every.items():
            for name, call in pair.items():
                start = time.perf_counter()
                call()
                if round_:
                    times[name][components].append(time.perf_counter() - start)
    return {name: _summary(by_size) for name, by_size in times.items()}


def _summary(times: dict[int, list[float]]) -> dict[str, dict[str, float]]:
    seconds = {k: median(values) for k, values in times.items()}
    return {
        "milliseconds": {str(k): round(1e3 * value, 3) for k, value in seconds.items()},
        "ratios": {str(k): round(value / seconds[1], 3) for k, value in seconds.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--most", type=int, default=1024)
    parser.add_argument("--out", type=Path, default=Path("results/mixture-cost.json"))
    parser.add_argument("--picture", type=Path, default=Path("docs/pictures/mixture-cost.png"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    shapes = []
    with checks.values(False):  # as in training
        for dim in DIMS:
            few = max(1, args.rounds // 10)  # they take seconds each
            shape: dict[str, Any] = {
                "dim": dim,
                "disjoint": measure(disjoint, dim, args.most, args.rounds),
                "ordinary": measure(ordinary, dim, min(args.most, MOST_OF_ORDINARY), few),
            }
            shapes.append(shape)
            for which in ("disjoint", "ordinary"):
                told = ", ".join(f"{k}: {r:.2f}" for k, r in shape[which]["training_step"]["ratios"].items())
                print(f"D = {dim}, {which} mixture, training step by K, times that of K = 1: {told}", flush=True)
    record = {"batch": BATCH, "config": to_json(CONFIG), "to_reach": TO_REACH, "shapes": shapes}
    records.write(args.out, {**record, **records.provenance(seed=0)})
    print(draw_cost(args.picture, shapes))


if __name__ == "__main__":
    main()
