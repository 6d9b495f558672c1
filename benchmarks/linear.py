"""Matrix products by oneDNN against those by MKL, alone and where models train, score and draw; one CPU thread.

    python -m benchmarks.linear            # about two minutes
    python -m benchmarks.linear --rounds 3

Products are y = x W' + b of single-precision matrices, forward and with gradients. Models are those of
`benchmarks.exact_speed` and the disjoint mixture of `benchmarks.mixture_cost` in 63 dimensions. Both libraries take
turns in rounds; ratios are medians over rounds. On Intel's processors `tessella.nets.linear` asks MKL, and here oneDNN
is asked none the less.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks import exact_speed, mixture_cost
from tessella import checks, records
from tessella.nets.linear import Linear, onednn

SHAPES = [(1024, 64, 192), (4096, 64, 128), (4096, 128, 64), (4096, 256, 256), (16384, 512, 512)]  # rows, in, out
WORK = 2**32  # multiplications of a product that is timed


def products(rows: int, inputs: int, outputs: int) -> dict[str, Callable[[], Any]]:
    """A layer forward, and forward and backward, repeated until the clock can tell."""
    layer, x = Linear(inputs, outputs), torch.randn(rows, inputs, requires_grad=True)
    pull, times = torch.randn(rows, outputs), max(1, WORK // (rows * inputs * outputs))

    @torch.no_grad()
    def forward() -> None:
        for _ in range(times):
            layer(x)

    def both() -> None:
        for _ in range(max(1, times // 3)):
            layer(x).backward(pull)

    return {"forward": forward, "forward and backward": both}


def cases() -> dict[str, dict[str, Callable[[], Any]]]:
    """What is timed, by names."""
    found = {f"({rows}, {i}) x ({i}, {o})": products(rows, i, o) for rows, i, o in SHAPES}
    for name in exact_speed.TABLES:
        calls = exact_speed.case(name).calls
        found[f"exact model, {name}"] = {what: calls[what] for what in ("draw", "score", "update")}
    dim = mixture_cost.DIMS[-1]
    density = mixture_cost.disjoint(mixture_cost.MOST_OF_ORDINARY, dim)
    found[f"disjoint mixture, {dim} dimensions"] = mixture_cost.calls(density, torch.randn(mixture_cost.BATCH, dim))
    return found


def ratios(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """How many times as fast each call is with oneDNN."""
    found: dict[str, list[float]] = {what: [] for what in calls}
    for round_ in range(rounds + 1):  # the first is not counted
        for what, call in calls.items():
            by_mkl, by_onednn = (_seconds(call, enabled) for enabled in (False, True))
            if round_:
                found[what].append(by_mkl / by_onednn)
    return {what: round(median(some), 3) for what, some in found.items()}


def _seconds(call: Callable[[], Any], enabled: bool) -> float:
    with onednn(enabled):
        start = time.process_time()
        call()
        return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("results/linear.json"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    faster = {}
    with checks.values(False):  # as in training
        for name, calls in cases().items():
            faster[name] = ratios(calls, args.rounds)
            print(name, faster[name], flush=True)
    records.write(args.out, {"times_as_fast": faster, **records.provenance(seed=0)})


if __name__ == "__main__":
    main()
