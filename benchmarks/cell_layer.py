"""The cell bijection against the paper's form: forward and backward, one run, ratios of medians.

    python -m benchmarks.cell_layer            # all shapes, about three minutes on 2 cores
    python -m benchmarks.cell_layer --no-compile
    python -m benchmarks.cell_layer --threads 1 --out results/cell_layer-one-thread.json

Both sides get the same points, anchors, learned box and learned scales in float32 on two CPU threads, and must agree
before they are timed. They take turns in short rounds, so that a disturbance of the machine hits both; the first two
calls of a round are not counted, as in training a layer finds memory as it left it. The compiled column is the same
layer under `torch.compile` (the reference cannot be compiled whole: it differentiates inside its forward pass). With
one thread seconds are those of the processor, which other programs on the machine disturb less.
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.paper_form import paper_form
from tessella import Box, CellBijection, Voronoi, records

# name: (B, N, K, D), anchors shared by all variables, ratio to reach
SHAPES = {
    "table, 42 variables": ((1024, 42, 3, 6), False, 4),
    "table, 68 variables": ((1024, 68, 18, 6), False, 12),
    "items": ((2048, 1, 765, 6), True, 60),
    "text, letters": ((32, 256, 27, 8), True, 5),
    "text, bytes": ((16, 320, 256, 8), True, 6),
    "mixture, D = 6": ((1048, 1, 128, 6), True, 8),
    "mixture, D = 63": ((1048, 1, 128, 63), True, 80),
}


def layer(shape: tuple[int, int, int, int], shared: bool) -> tuple[CellBijection, torch.Tensor, torch.Tensor]:
    """The bijection with a learned box and learned scales, displacements (B, N, D) and cells (B, N)."""
    batch, variables, cells, dim = shape
    torch.manual_seed(0)
    box = Box.cube(4.0, dim, learnable=True)
    tessellation = Voronoi.create(cells if shared else [cells] * variables, dim, box=box)
    cell = torch.randint(cells, (batch, variables))
    return CellBijection(tessellation), torch.randn(batch, variables, dim, requires_grad=True), cell


def backward(z: torch.Tensor, ladj: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a scalar in which both count."""
    (z.square().sum() + ladj.sum()).backward()
    return z.detach(), ladj.detach()


def problem(shape: tuple[int, int, int, int], shared: bool) -> dict[str, Callable[[], Any]]:
    """The two layers on the same numbers; each call is one forward and backward pass."""
    _, variables, cells, dim = shape
    bijection, y, cell = layer(shape, shared)
    tessellation = bijection.tessellation
    x = (y + tessellation.anchor_of(cell)).detach().requires_grad_()

    def ours() -> tuple[torch.Tensor, torch.Tensor]:
        return backward(*bijection.forward_and_ladj(y, cell))

    def reference() -> tuple[torch.Tensor, torch.Tensor]:
        assert tessellation.box is not None
        anchors = tessellation.anchors.expand(variables, cells, dim)
        log_scale = bijection.log_scale.expand(variables, cells)
        return backward(*paper_form(x, cell, anchors, log_scale, *tessellation.box.bounds()))

    compiled_layer = torch.compile(bijection.forward_and_ladj, fullgraph=True, dynamic=False)

    def compiled() -> tuple[torch.Tensor, torch.Tensor]:
        return backward(*compiled_layer(y, cell))

    return {"reference": reference, "ours": ours, "compiled": compiled}


def measure(calls: dict[str, Callable[[], Any]], rounds: int, each: int = 5) -> dict[str, float]:
    """Median seconds of each call, the calls taking turns in rounds of two uncounted and `each` counted ones."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    for _ in range(rounds):
        for name, call in calls.items():
            call(), call()
            for _ in range(each):
                start = clock()
                call()
                times[name].append(clock() - start)
    return {name: median(values) for name, values in times.items()}


def peak_bytes(shape: tuple[int, int, int, int], shared: bool, which: str) -> int:
    """Growth of the resident set of a fresh process during one forward and backward pass."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_peak_in_this_process, (shape, shared, which))


def _peak_in_this_process(shape: tuple[int, int, int, int], shared: bool, which: str) -> int:
    torch.set_num_threads(2)
    small = problem((4, *shape[1:2], 4, shape[3]), shared)
    small[which]()  # libraries and thread pools are loaded before the count starts
    call = problem(shape, shared)[which]
    Path("/proc/self/clear_refs").write_text("5")  # Linux: forget the peak so far
    before = _status_bytes("VmRSS")
    call()
    return _status_bytes("VmHWM") - before


def _status_bytes(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/cell_layer.json"))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for name, (shape, shared, target) in SHAPES.items():
        calls = problem(shape, shared)
        if args.no_compile:
            del calls["compiled"]
        for a, b in zip(calls["ours"](), calls["reference"](), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
        seconds = measure(calls, args.rounds)
        ratios = {which: seconds["reference"] / seconds[which] for which in calls if which != "reference"}
        rows.append({"name": name, "shape": shape, "target": target, "milliseconds": _ms(seconds), "ratios": ratios})
        told = ", ".join(f"{which} {ratio:.1f}x" for which, ratio in ratios.items())
        print(f"{name:22} (B, N, K, D) = {shape!s:20} {told}  (to reach: {target}x)", flush=True)
    shape, shared, _ = SHAPES["items"]
    peaks = {which: peak_bytes(shape, shared, which) for which in ("reference", "ours")}
    print(f"items, peak memory: {peaks['reference'] / 1e6:.0f} MB against {peaks['ours'] / 1e6:.1f} MB")
    record = {"shapes": rows, "items_peak_bytes": peaks, **records.provenance(seed=0)}
    records.write(args.out, record)


def _ms(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(1e3 * value, 3) for name, value in seconds.items()}


if __name__ == "__main__":
    main()
