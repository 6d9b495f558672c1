"""One run: data + model + training -> run folder, and back."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from tessella import records
from tessella.configs import from_json, to_json
from tessella.contracts import Trainable
from tessella.data import Encoding, Table
from tessella.data.tables.described import read_encoding
from tessella.folders import (
    BrokenFolderError,
    interpreting,
    put_elsewhere,
    read_json,
    read_tensors,
    tensor_bytes,
    write_whole,
)
from tessella.models import FlowConfig, StartOptions, TableConfig, TableModel
from tessella.models.restoring import restored
from tessella.training import FitResult, RunFolder, TrainingConfig, fit
from tessella.training.budget import within_budget
from tessella.training.processes import own_rank


@dataclass(frozen=True)
class DataConfig:
    """Which rows."""

    name: str = "nursery"
    """A table (`tessella data list`), quantized-NAME for a 2-D toy of 91 x 91 categories, or a CSV or Parquet file."""
    simulated: bool = False
    """pokerhands: simulate the hands (their distribution is known) instead of reading the file."""
    joined: bool = False
    """connect4, forests, pokerhands: columns that say one thing together are one, see `load_table`."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that determines a run."""

    data: DataConfig = field(default_factory=DataConfig)
    model: TableConfig = field(default_factory=FlowConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    preset: str = "custom"
    """Name that results carry."""


@dataclass(frozen=True)
class TrainedRun:
    """A trained model and what its rows mean."""

    folder: Path
    config: RunConfig
    encoding: Encoding
    model: TableModel

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device


def train_run(
    config: RunConfig, table: Table, folder: Path, validations: int | None = None
) -> tuple[TrainedRun, FitResult]:
    """Train, or continue what lies in the folder; the best averaged weights come back.

    Args:
        config: of the run.
        table: its data, by the name in the config.
        folder: of the run.
        validations: plan the run, with so many validations: as many steps as its time budget has room for, where it
            has one, and warm-up and validations to suit. None: train exactly as the config says.
    """
    with claimed_for_run(folder):
        return _train(config, table, folder, validations)


def claimed_for_run(folder: Path) -> AbstractContextManager[None]:
    """While entered, no other run may write into the folder: claimed by the first process of a run, for all of them.

    Whoever reads data for a run claims the folder before that: it can be written, and is nobody else's.
    """
    return RunFolder(folder, writes=own_rank() == 0).claimed()


def _train(config: RunConfig, table: Table, folder: Path, validations: int | None) -> tuple[TrainedRun, FitResult]:
    torch.manual_seed(config.training.seed)
    rows = table.train.tensors, table.validation.tensors
    started = config.model.start(table.encoding.shape, *rows, StartOptions(seed=config.training.seed))
    model, parts, pace, training = started.model, (table.train, table.validation), None, config.training
    if not isinstance(model, Trainable):
        raise TypeError(f"model: got {config.model.kind!r}, which counts; expected a model that is trained")
    if validations is not None:
        training, pace = within_budget(training, lambda: model, *parts, validations=validations, folder=folder)
    config = replace(config, model=started.config, training=training)
    about = {
        "preset": config.preset,
        "data": to_json(config.data),
        "model": to_json(config.model),
        "start": started.start,
        "encoding": table.encoding.to_json(),
        "partial": table.partial,
    }
    result = fit(model, *parts, training, folder, about, pace=pace)
    if result.unsaved:
        raise OSError(f"{folder}: the model cannot be written ({result.unsaved}); {_rescued(started.model, folder)}")
    return TrainedRun(folder, config, table.encoding, started.model), result


def _rescued(model: TableModel, folder: Path) -> str:
    """Put the model elsewhere; where that is, in words."""

    def write(path: Path) -> None:
        here = RunFolder(path)
        write_whole({here.config: RunFolder(folder).config.read_bytes(), here.model: tensor_bytes(model.state_dict())})

    return put_elsewhere(write, "tessella-run-")


def load_run(folder: Path, device: str = "cpu") -> TrainedRun:
    """The model of a run folder, in evaluation mode."""
    path = folder / "config.json"
    if not path.exists():
        raise FileNotFoundError(
            f"{folder}: no config.json there; expected a run folder, as `tessella train` makes them"
        )
    said = read_json(path)
    with interpreting(path):
        if "encoding" not in said["run"]:
            version = said.get("tessella", "unknown")
            raise BrokenFolderError(
                f"{path}: got a run of tessella {version}, whose models were described otherwise; train it again, or "
                f"evaluate it with that version (pip install tessella=={version})"
            )
        config = RunConfig(
            data=from_json(DataConfig, said["run"]["data"]),
            model=from_json(TableConfig, said["run"]["model"]),  # type: ignore[type-abstract]  # a family is meant
            training=from_json(TrainingConfig, said["training"]),
            preset=said["run"]["preset"],
        )
        encoding, weights = read_encoding(said["run"]["encoding"]), read_tensors(RunFolder(folder).model)
        model = restored(lambda: config.model.build(encoding.shape), said["run"]["model"], weights)
    return TrainedRun(folder, config, encoding, model.to(device).eval())


def record_of(run: TrainedRun, table: Table, **measured: Any) -> dict[str, Any]:
    """What results/ keeps of a run: what it was, how long it trained, what was measured, where that comes from."""
    state = RunFolder(run.folder).state()
    if state is None:
        raise FileNotFoundError(f"{run.folder}: no resume state there; expected the folder of a run that was trained")
    return {
        "data": table.name,
        "partial": table.partial,
        **named(run.config.model),
        "preset": run.config.preset,
        "steps": state.step,
        "seconds": round(state.seconds, 1),
        "initial_nll": state.initial_validation,
        "best_step": state.best_step,
        "validation_nll": state.best_validation,
        **measured,
        "entropy_floor": table.entropy_floor,
        "model": to_json(run.config.model),
        "training": to_json(run.config.training),
        **records.provenance(run.config.training.seed),
    }


def named(model: TableConfig) -> dict[str, str | None]:
    """What a record calls a model: its cells and density where it has some, else its kind."""
    if isinstance(model, FlowConfig):
        return {"method": model.cells.kind, "density": model.density.kind}
    return {"method": model.kind, "density": None}
