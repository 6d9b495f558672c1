"""`tessella train`."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, get_args

import tyro

from tessella.models import FlowConfig, TableConfig
from tessella.paper.tables.recipes import Preset, Recipe, Trained, recipe_for
from tessella.training import TrainingConfig

VALIDATIONS = 25  # of a run with a time to keep


@dataclass(frozen=True)
class TrainCommand:
    """What is trained on, for how long, and everything that is chosen about model and training."""

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
    """A table of the catalogue (tessella data list), quantized-NAME for a 2-D toy, or a CSV or Parquet file."""
    method: Trained = "voronoi"
    """A dequantizer with a flow behind it, or an exact network. What only counts is in `tessella reproduce tables`."""
    preset: Preset = "best"
    """best: what docs/results.md was made with, for a GPU; joined: columns that say one thing together are one variable
    (connect4, forests, pokerhands); blind: flows whose couplings know no cells; affine: those with affine couplings;
    mixture-start: from a fitted mixture of categoricals, on a CPU; small: from scratch, on a CPU; paper: the published
    architecture."""
    change: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = ()
    """Parts to take from another kind, e.g. --set cells=laguerre; their fields are then listed here."""
    out: Path | None = None
    """Run folder: config.json, metrics.jsonl, model.safetensors, and what resuming needs; runs/DATA without it."""
    minutes: float = 0.0
    """Train for about so long: steps are timed first, and as many planned as fit. 0 for the steps below."""
    simulated: bool = False
    """pokerhands: simulate the hands (their distribution is known) instead of reading the file."""
    model: Annotated[TableConfig, tyro.conf.arg(name="")] = field(default_factory=FlowConfig)
    training: Annotated[TrainingConfig, tyro.conf.arg(name="")] = field(default_factory=TrainingConfig)


def train_like(arguments: Sequence[str]) -> Callable[..., None]:
    """The command `train`, whose fields and defaults are those of the recipe that the arguments ask for."""
    recipe = _asked_for(arguments)
    data: Any = tyro.MISSING
    default = TrainCommand(data, model=recipe.model, training=recipe.training)

    def train(run: Annotated[TrainCommand, tyro.conf.arg(name="")] = default) -> None:
        _train(run)

    return train


def _asked_for(arguments: Sequence[str]) -> Recipe:
    """The recipe of the data, method, preset and parts that a command line names."""
    from tessella.configs import changed, parse_changes

    words = list(arguments[1:])
    data = words.pop(0) if words and not words[0].startswith("-") else ""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--method", default="voronoi")
    parser.add_argument("--preset", default="best")
    parser.add_argument("--set", nargs="*", default=[], action="extend")
    asked, _ = parser.parse_known_args(words)
    if asked.method not in get_args(Trained) or asked.preset not in get_args(Preset):
        return recipe_for(data)  # what is wrong will be said where the whole line is parsed
    recipe = recipe_for(data, asked.method, asked.preset)
    return replace(recipe, model=changed(recipe.model, parse_changes(asked.set)))


def _train(run: TrainCommand) -> None:
    from tessella.runs import claimed_for_run

    out = run.out or Path("runs") / Path(run.data).stem
    with claimed_for_run(out):
        _train_into(out, run)


def _train_into(out: Path, run: TrainCommand) -> None:
    from tessella.cli.tables import find_table
    from tessella.paper.figures.training import draw_training_curve
    from tessella.runs import DataConfig, RunConfig, train_run
    from tessella.training import RunFolder
    from tessella.training.processes import own_rank

    data = DataConfig(run.data, run.simulated, joined=run.preset == "joined")
    table = find_table(data)
    training = replace(run.training, time_budget=60 * run.minutes) if run.minutes else run.training
    config = RunConfig(data, run.model, training, run.preset)
    trained, result = train_run(config, table, out, VALIDATIONS if run.minutes else None)
    if own_rank():  # a further process of the same run
        return
    kind = "value" if getattr(trained.model, "exact", False) else "bound"
    print(f"{table.name}: validation {kind} {result.best_validation:.4f} nats at step {result.best_step:,}")
    if table.partial:
        print(f"partial data: {table.partial}")
    print(f"stopped by {result.stopped} after {result.steps:,} steps, {result.seconds:.0f} s")
    curve = draw_training_curve(out / "curve.png", RunFolder(out).read_metrics(), table.entropy_floor)
    print(f"run folder: {out}\ncurve: {curve}\nnext: tessella evaluate {quote(str(out))}")
