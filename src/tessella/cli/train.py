"""`tessella train`."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from tessella.paper.presets import ABOUT, PRESETS
from tessella.runs import RunConfig


@dataclass(frozen=True)
class TrainCommand(RunConfig):
    """A run and where it goes."""

    out: Path = Path("runs/latest")
    """Run folder: config.json, metrics.jsonl, model.safetensors, and what resuming needs."""


if TYPE_CHECKING:
    Preset = TrainCommand
else:
    Preset = tyro.extras.subcommand_type_from_defaults(
        {
            name: TrainCommand(run.data, run.model, run.training, run.preset, out=Path("runs") / name)
            for name, run in PRESETS.items()
        },
        descriptions=ABOUT,
        prefix_names=False,
    )


def train(run: Preset) -> None:
    """Train a model on a table: tessella train PRESET [--out FOLDER] [any field of the preset].

    Start from a preset (`custom` is a plain default) and change what you like, e.g.
    `tessella train nursery --out runs/nursery --dim 4 --steps 8000`. Killed or interrupted runs continue when the same
    command is given again. `tessella evaluate FOLDER` says how good the result is.

    Args:
        run: the preset to start from; `tessella train PRESET --help` lists every field with its value.
    """
    from tessella.paper.figures.quantized import draw_training_curve
    from tessella.runs import train_run
    from tessella.training import RunFolder

    trained, result = train_run(run, run.out)
    if int(os.environ.get("LOCAL_RANK", "0")) > 0:  # a further process of the same run
        return
    print(f"{trained.table.name}: validation bound {result.best_validation:.4f} nats at step {result.best_step:,}")
    if trained.table.partial:
        print(f"partial data: {trained.table.partial}")
    print(f"stopped by {result.stopped} after {result.steps:,} steps, {result.seconds:.0f} s")
    curve = draw_training_curve(run.out / "curve.png", RunFolder(run.out).read_metrics(), trained.table.floor)
    print(f"run folder: {run.out}\ncurve: {curve}\nnext: tessella evaluate {run.out}")
