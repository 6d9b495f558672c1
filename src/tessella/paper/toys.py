"""Figure 6 of the paper: disjoint mixtures of 2-D data, against baselines of the same size, trained alike."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Generator

from tessella import records
from tessella.configs import to_json
from tessella.contracts import Source
from tessella.data import TOYS, Rows
from tessella.densities import (
    BlockOptions,
    DensityConfig,
    DimensionwiseMixtureConfig,
    DisjointConfig,
    DisjointMixtureConfig,
    FlatCouplingConfig,
    Flow,
)
from tessella.models import VectorModel, build_vectors
from tessella.models.tables import number_of_parameters
from tessella.paper.effort import matmul_precision
from tessella.training import FitResult, RunFolder, TrainingConfig, fit
from tessella.training.budget import within_budget

FIGURE_6 = ("eight_gaussians", "pinwheel", "rings", "two_spirals", "checkerboard", "two_moons")
MIXTURE = DisjointMixtureConfig(cells=32, blocks=2, component_blocks=6, squashing=8.0, transform="spline")
INTERVALS = 3  # of each dimension, where they are cut one by one: more are worse, as are blocks before them
MODELS = ("coupling", "dimensionwise", "mixture")
RATES = (2e-3, 5e-3)  # all models are trained at each; the validation rows choose
# The three models of a toy at both rates: about ten minutes on one CPU core.
TRAINING = TrainingConfig(steps=3_000, batch_size=512, validate_every=300, accelerator="cpu")
ROWS = {"train": 100_000, "validation": 5_000, "test": 20_000}
ROWS_AT_ONCE = 10_000
# A GPU multiplies matrices faster whose rows are aligned in memory, which counts for wide networks.
WIDE, ALIGNED = 512, 8


@dataclass(frozen=True)
class FittedDensity:
    """A density that was trained, and what it says about rows that it has not seen."""

    config: DensityConfig
    density: Flow
    training: TrainingConfig
    fit: FitResult
    nll: float
    """Mean -log p of the test rows, nats; exact."""
    stderr: float

    @property
    def parameters(self) -> int:
        return number_of_parameters(self.density)


@dataclass(frozen=True)
class Chosen:
    """One run for each learning rate, and the one that the validation rows preferred."""

    runs: tuple[FittedDensity, ...]

    @property
    def best(self) -> FittedDensity:
        return min(self.runs, key=lambda run: run.fit.best_validation)

    @property
    def seconds(self) -> float:
        """Of all runs."""
        return sum(run.fit.seconds for run in self.runs)

    def summary(self) -> dict[str, Any]:
        """What a record says of one model; of the runs that were not chosen, only the validation value."""
        return {
            "nll": self.best.nll,
            "stderr": self.best.stderr,
            "validation_nll": self.best.fit.best_validation,
            "parameters": self.best.parameters,
            "seconds": round(self.seconds, 1),
            "learning_rate": self.best.training.learning_rate,
            "tried": [[run.training.learning_rate, run.fit.best_validation] for run in self.runs],
            "model": to_json(self.best.config),
        }


@dataclass(frozen=True)
class Comparison:
    """A disjoint mixture, a coupling flow without one, and a mixture that cuts each dimension, trained alike."""

    data: str
    mixture: Chosen
    coupling: Chosen
    dimensionwise: Chosen

    def record(self) -> dict[str, Any]:
        """What results/ keeps."""
        training = to_json(self.mixture.best.training)
        del training["learning_rate"]
        return {
            "data": self.data,
            "method": "disjoint mixture and baselines; learning rates chosen by validation NLL",
            "steps": self.mixture.best.fit.steps,
            "seconds": round(self.mixture.seconds + self.coupling.seconds + self.dimensionwise.seconds, 1),
            "test_rows": ROWS["test"],
            "mixture": self.mixture.summary(),
            "coupling": self.coupling.summary(),
            "dimensionwise": self.dimensionwise.summary(),
            "training": training,
            **records.provenance(training["seed"]),
        }


def toy_rows(name: str) -> dict[str, Rows]:
    """Seeded rows of a toy, (rows, 2), by split."""
    if name not in TOYS:
        raise ValueError(f"data: got {name!r}; expected one of {', '.join(TOYS)}")
    generator = Generator().manual_seed(1)
    return {split: Rows(TOYS[name](rows, generator)) for split, rows in ROWS.items()}


def compare(data: str, config: DisjointMixtureConfig, training: TrainingConfig, folder: Path) -> Comparison:
    """Train all models on a toy, or continue what lies in the folder."""
    rows = toy_rows(data)
    configs = {"mixture": config, "coupling": without_cells(config, 2), "dimensionwise": dimensionwise(config, 2)}
    return Comparison(data, **{name: choose(one, rows, training, folder / name) for name, one in configs.items()})


def choose(config: DensityConfig, rows: dict[str, Rows], training: TrainingConfig, folder: Path) -> Chosen:
    """A run for each of the learning rates."""
    trainings = [replace(training, learning_rate=rate) for rate in RATES]
    runs = (fit_density(config, rows, one, folder / f"{one.learning_rate}") for one in trainings)
    return Chosen(tuple(runs))


def finished(folder: Path, steps: int) -> bool:
    """Whether `compare` finds all its runs in the folder, and will only read them."""
    runs = [folder / model / f"{rate}" for model in MODELS for rate in RATES]
    states = [RunFolder(run).state() for run in runs]
    return all(state is not None and state.step == steps for state in states)


def fit_density(
    config: DensityConfig,
    rows: Mapping[str, Source],
    training: TrainingConfig,
    folder: Path,
    validations: int | None = None,
) -> FittedDensity:
    """The density of a config, trained on rows["train"] and scored on rows["test"], in nats.

    Args:
        config, training: what is trained, and how.
        rows: by split.
        folder: of the run.
        validations: plan the run, see `train_run`.
    """
    torch.manual_seed(training.seed)
    (like,) = rows["train"].batch(torch.zeros(1, dtype=torch.int64))
    model = build_vectors(config, like.shape[1]).to(like.dtype)
    parts, pace = (rows["train"], rows["validation"]), None
    if validations is not None:
        training, pace = within_budget(training, lambda: model, *parts, validations=validations, folder=folder)
    result = fit(model, *parts, training, folder, {"model": to_json(config)}, pace=pace)
    assert isinstance(model.density, Flow)
    with matmul_precision("highest"):
        return FittedDensity(config, model.density, training, result, *mean_nll(model, rows["test"]))


@torch.no_grad()
def mean_nll(model: VectorModel, rows: Source) -> tuple[float, float]:
    """Mean and standard error over the rows; a row without a finite value is an error, not left out."""
    device = next(model.parameters()).device
    parts = (rows.batch(part) for part in torch.arange(len(rows)).split(ROWS_AT_ONCE))
    nll = torch.cat([model.nll(x.to(device)) for (x,) in parts]).double()
    if not nll.isfinite().all():
        raise ArithmeticError(f"test rows: {int((~nll.isfinite()).sum())} of {len(nll)} have no finite log-density")
    return float(nll.mean()), float(nll.std() / len(nll) ** 0.5)


def without_cells(config: DisjointConfig, dim: int) -> FlatCouplingConfig:
    """A coupling flow of as many blocks, so wide that it has as many parameters as the mixture, or nearly so."""
    blocks = config.blocks + config.component_blocks
    return sized_like(FlatCouplingConfig(blocks, config.width, config.layers, **_options(config)), config, dim)


def dimensionwise(config: DisjointConfig, dim: int) -> DimensionwiseMixtureConfig:
    """A mixture that cuts each dimension for itself, with as many blocks, all inside, and as many parameters."""
    blocks = config.blocks + config.component_blocks
    cut = DimensionwiseMixtureConfig(
        INTERVALS,
        0,
        blocks,
        config.width,
        config.layers,
        config.squashing,
        config.base,
        config.steady,
        **_options(config),
    )
    return sized_like(cut, config, dim)


def _options(config: BlockOptions) -> dict[str, Any]:
    """What its coupling blocks are made of."""
    return {field.name: getattr(config, field.name) for field in fields(BlockOptions)}


Sized = TypeVar("Sized", FlatCouplingConfig, DimensionwiseMixtureConfig)


def sized_like(config: Sized, other: DisjointConfig, dim: int) -> Sized:
    """`config` with the width that gives it as many parameters as `other`, or nearly so; a wide one a multiple of 8."""

    def size(width: int) -> int:
        return number_of_parameters(build_vectors(replace(config, width=width), dim))

    target = number_of_parameters(build_vectors(other, dim))
    step = ALIGNED if other.width >= WIDE else 1
    widths = range(max(step, other.width // (4 * step) * step), 4 * other.width, step)
    above = bisect_left(widths, target, hi=len(widths) - 1, key=size)
    nearest = min(widths[max(0, above - 1) : above + 1], key=lambda width: abs(size(width) - target))
    return replace(config, width=nearest)
