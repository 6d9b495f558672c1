"""Nearest anchor without looking at all cells: where it pays on one CPU thread.

    python -m benchmarks.pruning            # about a minute

Anchors and points are Gaussian. Anchors are sorted into blocks of 128 by halving the widest side of a box again and
again. A block is skipped when no point of its region can be nearer than the best anchor known: with the region a ball
around the mean (the triangle inequality), or the smallest box. Both searches are exact and are seen to agree.
`looked at` is the share of cells in blocks that cannot be skipped even if the nearest distance is known beforehand:
what no search over these blocks can avoid. `pruned` is a search by boxes that starts in the block with the nearest
box, timed where boxes spare nine cells of ten; `sorting` must be repeated whenever anchors have moved, which in
training is every step.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tessella import records
from tessella.geometry import search

BLOCK = 128
WORTH_A_TRY = 0.1
SHAPES = [(dim, 2**log) for dim in (2, 4, 6, 8, 16, 32) for log in (14, 17)] + [(6, 2**20), (16, 2**20)]


class Blocks(NamedTuple):
    """Anchors in blocks (blocks, BLOCK, D), whose they are (blocks, BLOCK), and the boxes around them (blocks, D)."""

    anchors: Tensor
    cells: Tensor
    lo: Tensor
    hi: Tensor


def sorted_blocks(anchors: Tensor) -> Blocks:
    """Halve the widest side of every block until it has `BLOCK` anchors, (K, D); K is a power of two."""
    index = torch.arange(len(anchors))[None]
    while index.shape[1] > BLOCK:
        points = anchors[index]
        widest = (points.amax(1) - points.amin(1)).argmax(1)
        side = points.gather(2, widest[:, None, None].expand(-1, index.shape[1], 1))[..., 0]
        index = index.gather(1, side.argsort(1)).reshape(-1, index.shape[1] // 2)
    points = anchors[index]
    return Blocks(points, index, points.amin(1), points.amax(1))


def box_distances(x: Tensor, blocks: Blocks) -> Tensor:
    """Squared distance of every point to every box, (M, blocks)."""
    total = torch.zeros(len(x), len(blocks.lo))
    for side in range(x.shape[1]):
        here = x[:, side, None]
        total += torch.maximum(blocks.lo[:, side] - here, here - blocks.hi[:, side]).clamp_min_(0).square_()
    return total


def pruned(x: Tensor, blocks: Blocks) -> Tensor:
    """Index of the nearest anchor, (M,)."""
    return torch.cat([_pruned(part, blocks) for part in x.split(256)])


def _pruned(x: Tensor, blocks: Blocks) -> Tensor:
    bound = box_distances(x, blocks)
    best, _ = _in_blocks(x, blocks, bound.argmin(1))
    point, block = (bound <= best[:, None]).nonzero(as_tuple=True)
    value, index = _in_blocks(x[point], blocks, block)
    best = best.scatter_reduce(0, point, value, "amin")
    won = value == best[point]
    return torch.zeros(len(x), dtype=torch.int64).scatter(0, point[won], index[won])


def _in_blocks(x: Tensor, blocks: Blocks, block: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distance of the nearest anchor of one block for each point, and whose it is."""
    value, row = (blocks.anchors[block] - x[:, None]).square_().sum(-1).min(1)
    return value, blocks.cells[block, row]


def looked_at(x: Tensor, blocks: Blocks, distance: Tensor) -> dict[str, float]:
    """Shares of blocks that may hold an anchor as near as `distance`."""
    centre = blocks.anchors.mean(1)
    radius = (blocks.anchors - centre[:, None]).square().sum(-1).amax(1).sqrt()
    balls = torch.cdist(x, centre) - radius <= distance[:, None]
    boxes = box_distances(x, blocks) <= distance.square()[:, None]
    return {"balls": round(float(balls.float().mean()), 4), "boxes": round(float(boxes.float().mean()), 4)}


def row(dim: int, cells: int, points: int) -> dict[str, Any]:
    torch.manual_seed(0)
    anchors, x = torch.randn(cells, dim), torch.randn(points, dim)
    columns, there = x.T[None].contiguous(), anchors.T[None].contiguous()
    sorting, blocks = timed(lambda: sorted_blocks(anchors))
    full, truth = timed(lambda: search.nearest_anchor(columns, there)[0])
    distance = (x - anchors[truth]).square().sum(-1).sqrt()
    shown: dict[str, Any] = {"dim": dim, "cells": cells, "full_ms": _ms(full), "sorting_ms": _ms(sorting)}
    shown["looked_at"] = looked_at(x[:256], blocks, distance[:256])
    if shown["looked_at"]["boxes"] < WORTH_A_TRY:
        fast, found = timed(lambda: pruned(x, blocks))
        torch.testing.assert_close((x - anchors[found]).square().sum(-1).sqrt(), distance)
        shown["pruned_ms"] = _ms(fast)
        if fast < full:  # points for which sorting and pruning take as long as looking at all cells
            shown["pays_from_points"] = round(points * sorting / (full - fast))
    print(shown, flush=True)
    return shown


def _ms(seconds: float) -> float:
    return round(1e3 * seconds, 1)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, best of two."""
    found = []
    for _ in range(2):
        start = time.process_time()
        result = call()
        found.append(time.process_time() - start)
    return min(found), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--out", type=Path, default=Path("results/pruning.json"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row(dim, cells, args.points) for dim, cells in SHAPES]
    records.write(args.out, {"points": args.points, "block": BLOCK, "shapes": rows, **records.provenance(seed=0)})


if __name__ == "__main__":
    main()
