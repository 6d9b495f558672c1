"""The cell bijection and the nearest anchor on a GPU: plain PyTorch, Triton's kernels, compiled, captured; ceilings.

    python -m benchmarks.gpu --smoke                   # first show that all programs agree at every shape
    python -m benchmarks.gpu                           # all shapes, within two minutes on an H200
    python -m benchmarks.gpu --smoke --shapes small    # those where launches are the time

Forward and backward of the layer, float32, median milliseconds with a synchronization after every call; values are not
looked at (`checks.values(False)`), and gradients begin as None, as in training. Backward is given the gradients of
both results, as a layer is within a model; `with a loss` adds the scalar z.square().sum() + ladj.sum() and its
gradient, some ten operations more. `autograd`, `plain` and `triton` run
eagerly: the expression under automatic differentiation, the map with gradients by hand in PyTorch, and the same with
Triton's kernels (one for the whole map where there are few pairs of points and cells, else the search alone).
`captured` is the last as one CUDA graph; `compiled` the layer under `torch.compile`, `compiled and captured` both;
`inverse` is the way out of the cells. Memory is the peak beyond what lay there before the call, gradients included.

The floor is the larger of two times: the subtraction and the multiply-adds that the search needs for every coordinate
of every pair of point and cell (three instructions for a wall, two for a distance) at the peak rate of the device, and
the bytes that must move at the least (points, anchors, results and their gradients once) at the peak bandwidth. Peaks
are the vendor's; `share` is the floor over the time taken.
"""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.cell_layer import SHAPES, backward, layer
from tessella import checks, records
from tessella.bijections import CellBijection
from tessella.geometry import kernels

LARGE = {
    "a vocabulary": ((4096, 1, 50257, 32), True),
    "a million categories": ((4096, 1, 1_000_000, 16), True),
}
ALL = LARGE | {name: (shape, shared) for name, (shape, shared, _) in SHAPES.items()}
PEAKS = {"NVIDIA H200": (33.5e12, 4.8e12)}  # single-precision instructions a second (a multiply-add is one), bytes
PATIENCE = 0.5  # seconds of calls for each number, and one call at least
Call = Callable[[], Any]


class Layer:
    """One shape: the calls that are timed on it."""

    def __init__(self, name: str):
        self.name = name
        self.shape, self.shared = ALL[name]
        with torch.device("cuda"):
            self.bijection, self.y, self.cell = layer(self.shape, self.shared)
            self.points = torch.randn_like(self.y)
            self.pulls = torch.randn_like(self.y), torch.ones_like(self.y[..., 0])
        self.leaves = [self.y, *self.bijection.parameters()]

    def eager(self, triton: bool = True, followed: bool = False, loss: bool = False) -> Call:
        """Forward and backward, with Triton's kernels or plain ones; by automatic differentiation where followed."""
        back = backward if loss else self.back

        def call() -> None:
            self.forget()
            with kernels.triton(triton), following(followed):
                back(*self.bijection.forward_and_ladj(self.y, self.cell))

        return call

    def back(self, *results: torch.Tensor) -> None:
        """From given gradients."""
        torch.autograd.backward(results, self.pulls)

    def forget(self) -> None:
        """Gradients that are there, as optimizers do after an update."""
        for leaf in self.leaves:
            leaf.grad = None

    @cached_property
    def inside(self) -> torch.Tensor:
        """Points of the cells, half as far from the anchors as the walls at most."""
        with torch.no_grad():
            image, _ = self.bijection.forward_and_ladj(self.y, self.cell)
            points = image.lerp(self.bijection.tessellation.anchor_of(self.cell), 0.5).contiguous().requires_grad_()
        self.leaves.append(points)
        return points

    def inverse(self) -> Call:
        """Out of the cells, and backward, with Triton's kernels."""

        def call() -> None:
            self.forget()
            with kernels.triton(True):
                self.back(*self.bijection.inverse_and_ladj(self.inside, self.cell))

        return call

    @cached_property
    def compiled(self) -> Call:
        """The layer as one compiled graph, Triton's searches in it."""
        torch._dynamo.reset()  # each shape is compiled for itself
        compiled_layer = torch.compile(self.bijection.forward_and_ladj, fullgraph=True, dynamic=False)

        def call() -> None:
            self.forget()
            self.back(*compiled_layer(self.y, self.cell))

        return call

    def nearest(self, triton: bool = True) -> Call:
        """The cells of other points."""

        def call() -> None:
            with kernels.triton(triton), torch.no_grad():
                self.bijection.tessellation.nearest(self.points)

        return call

    def calls(self) -> dict[str, Callable[[], Call]]:
        """What is timed, made when its turn comes: compiling and capturing take their time."""
        return {
            "triton": self.eager,
            "with a loss": lambda: self.eager(loss=True),
            "captured": lambda: captured(self.eager()),
            "plain": lambda: self.eager(False),
            **({"autograd": lambda: self.eager(False, True)} if self.name in SHAPES else {}),
            "inverse, triton": self.inverse,
            "nearest, triton": self.nearest,
            "nearest, captured": lambda: captured(self.nearest()),
            "nearest, plain": lambda: self.nearest(False),
            "compiled": lambda: self.compiled,
            "compiled and captured": lambda: captured(self.compiled),
        }

    def floor(self, which: str) -> tuple[float, str]:
        """Seconds that no program for this shape can go below on this device, and what binds."""
        batch, variables, cells, dim = self.shape
        rate, bandwidth = PEAKS.get(torch.cuda.get_device_name(), (float("inf"), float("inf")))
        nearest = which.startswith("nearest")
        arithmetic = batch * variables * cells * dim * (2 if nearest else 3) / rate
        points, anchors = batch * variables * dim, (1 if self.shared else variables) * cells * dim
        moved = 4 * (points + anchors if nearest else 4 * points + 2 * anchors) / bandwidth
        return max((arithmetic, "arithmetic"), (moved, "bandwidth"))


def following(enabled: bool) -> AbstractContextManager[Any]:
    """As if somebody followed single operations: the map is the expression, differentiated automatically."""
    return patch.object(checks, "followed", lambda: True) if enabled else nullcontext()


def captured(call: Call) -> Call:
    """One CUDA graph of the whole call."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def measure(make: Callable[[], Call]) -> dict[str, float]:
    """Median milliseconds, and peak memory in megabytes."""
    call = make()
    seconds, begun = [timed(call)], time.perf_counter()
    if seconds[0] < 2:  # else there is no time to warm up
        timed(call)
        seconds.clear()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    while not seconds or (time.perf_counter() - begun < PATIENCE and len(seconds) < 100):
        seconds.append(timed(call))
    peak = torch.cuda.max_memory_allocated() - before
    return {"milliseconds": round(1e3 * median(seconds), 4), "peak_megabytes": round(peak / 1e6, 1)}


def timed(call: Call) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def differences(one: Layer, most: int = 512) -> dict[str, float]:
    """Largest differences between the two searches: gauge (relative), its gradients, squared distances (relative)."""
    bijection: CellBijection = one.bijection
    t, found = bijection.tessellation, {}
    y, cell = one.y[:most].detach(), one.cell[:most]
    values, slopes, cells = [], [], []
    for search in (True, False):
        with kernels.triton(search):
            leaf = y.clone().requires_grad_()
            h = t.gauge(leaf, cell)
            slopes.append(torch.autograd.grad(h.square().sum(), [leaf, t.free]))
            values.append(h.detach().double())
            cells.append(t.nearest(one.points[:most]))
    found["gauge"] = float(((values[0] - values[1]).abs() / values[1].clamp_min(1e-6)).max())
    for name, a, b in zip(("gradient of y", "gradient of anchors"), *slopes, strict=True):
        found[name] = float((a - b).abs().max() / b.abs().max())
    anchors = [t.anchor_of(k).detach().double() for k in cells]
    powers = [(one.points[:most].double() - at).square().sum(-1) for at in anchors]
    found["nearest"] = float(((powers[0] - powers[1]).abs() / powers[1]).max())
    found["other cells"] = float((cells[0] != cells[1]).sum())
    return found


def errors(one: Layer, out: bool, triton: bool) -> dict[str, float]:
    """|found - truth| / |truth| of image, ladj and all gradients: single precision against autograd in double."""

    def derivatives(bijection: CellBijection, dtype: torch.dtype) -> dict[str, torch.Tensor]:
        x = (one.inside if out else one.y).detach().to(dtype).requires_grad_()
        image, ladj = (bijection.inverse_and_ladj if out else bijection.forward_and_ladj)(x, one.cell)
        names, wanted = zip(("points", x), *bijection.named_parameters(), strict=True)
        slopes = torch.autograd.grad(image.square().sum() + ladj.sum(), wanted)
        return {"image": image.detach(), "ladj": ladj.detach(), **dict(zip(names, slopes, strict=True))}

    with kernels.triton(triton):
        found = derivatives(one.bijection, torch.float32)
    with following(True):
        truth = derivatives(deepcopy(one.bijection).double(), torch.float64)
    return {name: float((found[name] - value).norm() / value.norm()) for name, value in truth.items()}


def smoke(names: list[str]) -> bool:
    """Whether searches and maps agree at every shape; prints by how much they differ."""
    good = True
    for name in names:
        one = Layer(name)
        found = differences(one)
        good &= found["gauge"] < 1e-5 and found["nearest"] < 1e-12
        print(f"{name:22}", ", ".join(f"{what} {value:.2g}" for what, value in found.items()), flush=True)
        for out in (False, True) if name in SHAPES else ():
            fused, plain = (errors(one, out, triton) for triton in (True, False))
            good &= all(fused[what] < 1e-4 + 3 * plain[what] for what in fused)
            told = ", ".join(f"{what.split('.')[-1]} {fused[what]:.1g} ({plain[what]:.1g})" for what in fused)
            print(f"{name:22} {'out of' if out else 'into'} the cells, triton (plain): {told}", flush=True)
    print("all programs agree" if good else "the programs DIFFER", flush=True)
    return good


def row(name: str, late: Callable[[], bool]) -> dict[str, Any]:
    one = Layer(name)
    shown: dict[str, Any] = {"name": name, "shape": one.shape}
    for which, make in one.calls().items():
        if late() and which.startswith("compiled"):
            shown[which] = {"skipped": "no time left"}
            continue
        try:
            found: dict[str, Any] = measure(make)
        except Exception as error:  # one number less, and all others are still worth having
            shown[which] = {"failed": f"{type(error).__name__}: {error}"[:500]}
            print(f"{name:22} {which:22} failed: {error}"[:500], flush=True)
            continue
        seconds, bound = one.floor(which)
        found |= {"bound": bound, "share": round(1e3 * seconds / found["milliseconds"], 4)}
        shown[which] = found
        told = f"{found['milliseconds']:10.3f} ms {found['peak_megabytes']:8.1f} MB, {found['share']:.3f} of {bound}"
        print(f"{name:22} {which:22} {told}", flush=True)
    return shown


def table(rows: list[dict[str, Any]]) -> str:
    """The milliseconds, and the memory and share of the ceiling of Triton's kernels, as Markdown."""
    columns = [
        "autograd", "plain", "triton", "with a loss", "captured", "compiled", "compiled and captured",
        "inverse, triton", "nearest, plain", "nearest, triton", "nearest, captured",
    ]  # fmt: skip
    lines = [["(B, N, K, D)", *columns, "MB, plain", "MB, triton", "share"], ["---"] * (len(columns) + 4)]
    for one in rows:
        shown = [f"{one[name]['milliseconds']:.3g}" if "milliseconds" in one.get(name, {}) else "-" for name in columns]
        memory = [str(one[name].get("peak_megabytes", "-")) for name in ("plain", "triton")]
        lines.append([str(one["shape"]), *shown, *memory, str(one["captured"].get("share", "-"))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="show that all programs agree, then measure")
    parser.add_argument("--shapes", choices=["all", "small", "large"], default="all")
    parser.add_argument("--seconds", type=float, default=85, help="no compilation begins after so long")
    parser.add_argument("--out", type=Path, default=Path("results/gpu.json"))
    args = parser.parse_args()
    if not torch.cuda.is_available() or not kernels.DEVICES:
        sys.exit("benchmarks.gpu: needs a GPU and Triton")
    names = {"all": list(ALL), "small": list(SHAPES), "large": list(LARGE)}[args.shapes]
    begun = time.perf_counter()
    with checks.values(False):
        if args.smoke and not smoke(names):
            sys.exit(1)
        rows = [row(name, lambda: time.perf_counter() - begun > args.seconds) for name in names]
    print(table(rows))
    record = {"device": torch.cuda.get_device_name(), "peaks": PEAKS, "shapes": rows}
    records.write(args.out, {**record, **records.provenance(seed=0)})
    if any("failed" in value for one in rows for value in one.values() if isinstance(value, dict)):
        sys.exit(1)


if __name__ == "__main__":
    main()
