"""One run: data + model + training -> run folder, and back."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from tessella import records
from tessella.baselines.choosing import fit_mixture
from tessella.data import TABLES, TOYS, Rows, Schema, Table, Variable, load_table, quantized_toy
from tessella.densities import Flow, CellMixture
from tessella.dequantizers.cells import NARROW, VoronoiCells
from tessella.dequantizers.components import components_in_cells
from tessella.models import SemiDiscrete, SemiDiscreteConfig, build
from tessella.training import FitResult, RunFolder, TrainingConfig, fit, load_best
from tessella.training.pace import Pace

QUANTIZED = "quantized-"
TRAIN_ROWS, OTHER_ROWS = 200_000, 10_000


@dataclass(frozen=True)
class DataConfig:
    """Which rows."""

    name: str = "nursery"
    """A table (`tessella data list`), or quantized-NAME for a 2-D toy of 91 x 91 categories."""
    simulated: bool = False
    """pokerhands: simulate the hands (their law is known) instead of reading the file."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that determines a run."""

    data: DataConfig = field(default_factory=DataConfig)
    model: SemiDiscreteConfig = field(default_factory=SemiDiscreteConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    preset: str = "custom"
    """Name that results carry."""


@dataclass(frozen=True)
class TrainedRun:
    """A trained model with the data it belongs to."""

    folder: Path
    config: RunConfig
    table: Table
    model: SemiDiscrete


def load_data(config: DataConfig) -> Table:
    """A table by name; a quantized toy becomes a table too, with its entropy as the floor."""
    if not config.name.startswith(QUANTIZED):
        if config.name not in TABLES:
            known = [*TABLES, *(QUANTIZED + toy for toy in TOYS)]
            raise ValueError(f"data: got {config.name!r}; expected one of {', '.join(known)}")
        return load_table(config.name, simulated=config.simulated)
    toy = quantized_toy(config.name.removeprefix(QUANTIZED))
    generator = torch.Generator().manual_seed(1)
    train, validation, test = (toy.sample(rows, generator) for rows in (TRAIN_ROWS, OTHER_ROWS, OTHER_ROWS))
    bins = tuple(str(i) for i in range(len(toy.probabilities)))
    return Table(
        name=config.name,
        schema=Schema((Variable("x", bins), Variable("y", bins))),
        train=train,
        validation=validation,
        test=test,
        floor=toy.entropy(),
        partial=None,
        source="made by tessella.data.toys",
        licence="Apache-2.0",
    )


def train_run(config: RunConfig, folder: Path, pace: Pace | None = None) -> tuple[TrainedRun, FitResult]:
    """Train, or continue what lies in the folder; the best averaged weights come back."""
    table = load_data(config.data)
    torch.manual_seed(config.training.seed)
    model = build(config.model, table.schema.counts)
    start(model, config.model, table, config.training.seed)
    about = {
        "preset": config.preset,
        "data": asdict(config.data),
        "model": asdict(config.model),
        "schema": json.loads(table.schema.to_json()),
        "partial": table.partial,
    }
    result = fit(model, Rows(table.train), Rows(table.validation), config.training, folder, about, pace=pace)
    return TrainedRun(folder, config, table, model), result


def start(model: SemiDiscrete, config: SemiDiscreteConfig, table: Table, seed: int) -> None:
    """Put cells and base where the training rows suggest; what is to be learned from scratch stays.

    Another seed finds another mixture; the noise of positions comes from torch's generator.
    """
    cells = model.dequantizer.cells
    if config.placement == "profiles":
        cells.arrange(table.train)
    if config.base != "classes":
        return
    assert isinstance(cells, VoronoiCells)
    cells.spread_out()
    cells.narrow(NARROW)
    modes = components_in_cells(cells, table.train, numbers=0)
    base = model.density.base if isinstance(model.density, Flow) else model.density
    train, validation = (modes.of_rows(part, torch.empty(len(part), 0)) for part in (table.train, table.validation))
    assert isinstance(base, CellMixture)
    classes = fit_mixture(modes.counts, train, validation, config.classes, seed=seed)
    base.start(classes.log_weight, classes.log_table, modes.centre, modes.scale)


def load_run(folder: Path, device: str = "cpu") -> TrainedRun:
    """The model of a run folder, in evaluation mode, and the data it was trained on."""
    path = folder / "config.json"
    if not path.exists():
        raise FileNotFoundError(
            f"{folder}: no config.json there; expected a run folder, as `tessella train` makes them"
        )
    said = json.loads(path.read_text())
    config = RunConfig(
        data=DataConfig(**said["run"]["data"]),
        model=SemiDiscreteConfig(**said["run"]["model"]),
        training=TrainingConfig(**said["training"]),
        preset=said["run"]["preset"],
    )
    schema = Schema.from_json(json.dumps(said["run"]["schema"]))
    model = build(config.model, schema.counts)
    load_best(model, folder)
    return TrainedRun(folder, config, load_data(config.data), model.to(device).eval())


def record_of(run: TrainedRun, **measured: Any) -> dict[str, Any]:
    """What results/ keeps of a run: what it was, how long it trained, what was measured, where that comes from."""
    model, state = run.config.model, RunFolder(run.folder).state()
    if state is None:
        raise FileNotFoundError(f"{run.folder}: no resume state there; expected the folder of a run that was trained")
    return {
        "data": run.table.name,
        "partial": run.table.partial,
        "method": model.dequantizer,
        "density": model.density,
        "preset": run.config.preset,
        "steps": state.step,
        "seconds": round(state.seconds, 1),
        "initial_nll": state.initial_validation,
        "best_step": state.best_step,
        "validation_nll": state.best_validation,
        **measured,
        "floor": run.table.floor,
        "model": asdict(model),
        "training": asdict(run.config.training),
        **records.provenance(run.config.training.seed),
    }
