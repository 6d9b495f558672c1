"""The cost of a step of `TabularFlow` against its formula (docs/scale.md); writes results/scale.json.

python -m benchmarks.scale                  # one CPU thread, two minutes
python -m benchmarks.scale --device cuda --width 256 --layers 4 --batch-size 2048 --categories 1000000
"""

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from tessella import checks, records
from tessella.data import TableShape
from tessella.models import AutoregressiveConfig
from tessella.training import TrainingConfig
from tessella.training.learner import Learner
from tessella.training.processes import Processes

WARM, TIMED = 6, 5  # updates: the first few are not counted, and on a GPU the step is captured


def multiplications(columns: int, categories: int, width: int, layers: int) -> float:
    """L N (8 w^2 + 2 N w) + w sum_j K_j: of one row, forward."""
    return layers * columns * (8 * width**2 + 2 * columns * width) + width * categories


def measured(shape: TableShape, options: argparse.Namespace) -> dict[str, Any]:
    """A step of a model of such rows."""
    config = TrainingConfig(batch_size=options.batch_size, optimizer="muon", accelerator=options.device)
    processes, device = Processes(config), torch.device(options.device)
    model = (
        AutoregressiveConfig(width=options.width, layers=options.layers, dropout=0.0).build(shape).float().to(device)
    )
    codes = torch.stack([torch.randint(count, (options.batch_size,)) for count in shape.counts], 1).to(device)
    model.start(codes)
    learner, seconds = Learner(model.train(), config, processes), []
    with checks.values(False):
        for step in range(WARM + TIMED):
            _finish(device)
            began = time.perf_counter()
            learner.update(step, (codes,))
            _finish(device)
            seconds.append(time.perf_counter() - began)
    needed = multiplications(len(shape.counts), sum(shape.counts), options.width, options.layers)
    taken, parameters = median(seconds[WARM:]), sum(weight.numel() for weight in model.parameters())
    operations = 6 * options.batch_size * needed  # a multiplication and an addition, forward and twice as much backward
    return {
        "columns": len(shape.counts),
        "categories": sum(shape.counts),
        "parameters": parameters,
        "seconds": round(taken, 5),
        "rows_per_second": round(options.batch_size / taken),
        "operations": operations,
        "gigaflops": round(operations / taken / 1e9, 2),
    }


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    """Columns and categories, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--categories", type=int, default=100_000, help="at most, of one column")
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.device == "cpu":
        torch.set_num_threads(1)
    shapes = [(8,) * columns for columns in (8, 16, 32, 64, 128)]
    large = [1000, 10_000, 100_000, 1_000_000]
    shapes += [(count, *(8,) * 7) for count in large if count <= options.categories]
    found = []
    for counts in shapes:
        found.append(measured(TableShape(counts), options))
        print(found[-1], flush=True)
    said = {"width": options.width, "layers": options.layers, "batch_size": options.batch_size, "steps": found}
    name = "scale.json" if options.device == "cpu" else "scale-gpu.json"
    records.write(options.results / name, said | records.provenance(0))


if __name__ == "__main__":
    main()
