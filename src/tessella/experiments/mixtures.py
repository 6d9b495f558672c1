"""Disjoint mixtures of 2-D data (Figure 6 of the paper), against coupling flows of the same size, trained alike."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from tessella import records
from tessella.data import TOYS
from tessella.densities import Flow
from tessella.models.density import DensityConfig, DensityModel, build_density
from tessella.training import FitResult, TrainingConfig, fit

FIGURE_6 = ("eight_gaussians", "pinwheel", "rings", "two_spirals", "checkerboard", "two_moons")
MIXTURE = DensityConfig(cells=64, blocks=2, component_blocks=6)
# Both models of a toy together: about 75 seconds on one CPU core.
TRAINING = TrainingConfig(steps=3_500, batch_size=512, learning_rate=5e-3, validate_every=350, accelerator="cpu")
FIRST_LOOK = 5_000  # rows that the cells are placed by
ROWS = {"train": 100_000, "validation": 5_000, "test": 20_000}


@dataclass(frozen=True)
class Fitted:
    """A density that was trained, and what it says about rows that it has not seen."""

    config: DensityConfig
    density: Flow
    fit: FitResult
    nll: float
    """Mean -log p of the test rows, nats; exact."""
    stderr: float

    @property
    def parameters(self) -> int:
        return number_of_parameters(self.density)

    def summary(self) -> dict[str, Any]:
        """What a record says of one model."""
        return {
            "nll": self.nll,
            "stderr": self.stderr,
            "parameters": self.parameters,
            "seconds": round(self.fit.seconds, 1),
            "model": asdict(self.config),
        }


@dataclass(frozen=True)
class Comparison:
    """A disjoint mixture and a coupling flow without one, trained alike."""

    data: str
    mixture: Fitted
    coupling: Fitted
    training: TrainingConfig

    def record(self) -> dict[str, Any]:
        """What results/ keeps."""
        return {
            "data": self.data,
            "method": f"{self.mixture.config.geometry} mixture",
            "steps": self.mixture.fit.steps,
            "seconds": round(self.mixture.fit.seconds + self.coupling.fit.seconds, 1),
            "test_rows": ROWS["test"],
            "mixture": self.mixture.summary(),
            "coupling": self.coupling.summary(),
            "training": asdict(self.training),
            **records.provenance(self.training.seed),
        }


def toy_rows(name: str) -> dict[str, Tensor]:
    """Seeded rows of a toy, (rows, 2), by split."""
    if name not in TOYS:
        raise ValueError(f"data: got {name!r}; expected one of {', '.join(TOYS)}")
    generator = Generator().manual_seed(1)
    return {split: TOYS[name](rows, generator) for split, rows in ROWS.items()}


def compare(data: str, config: DensityConfig, training: TrainingConfig, folder: Path) -> Comparison:
    """Train both models on a toy, or continue what lies in the folder."""
    rows = toy_rows(data)
    without = replace(config, cells=0, width=matching_width(config, 2))
    mixture = fit_density(config, rows, training, folder / "mixture")
    return Comparison(data, mixture, fit_density(without, rows, training, folder / "coupling"), training)


def fit_density(config: DensityConfig, rows: dict[str, Tensor], training: TrainingConfig, folder: Path) -> Fitted:
    """The density of a config, trained on rows["train"] and scored on rows["test"], in nats."""
    torch.manual_seed(training.seed)
    density = build_density(config, rows["train"].shape[1]).to(rows["train"].dtype)
    # A flow initialises its bijection; the cells behind it want to see the rows too.
    density.base.initialize(density.bijection.initialize(rows["train"][:FIRST_LOOK]))
    model = DensityModel(density)
    result = fit(model, rows["train"], rows["validation"], training, folder, {"model": asdict(config)})
    with torch.no_grad():
        nll = torch.cat([model.nll(part) for part in rows["test"].split(10_000)]).double()
    return Fitted(config, density, result, float(nll.mean()), float(nll.std() / len(nll) ** 0.5))


def matching_width(config: DensityConfig, dim: int) -> int:
    """The width at which the coupling flow without cells has as many parameters as the mixture, or nearly so."""
    target = number_of_parameters(build_density(config, dim))
    sizes = {
        width: number_of_parameters(build_density(replace(config, cells=0, width=width), dim))
        for width in range(config.width, 4 * config.width)
    }
    return min(sizes, key=lambda width: abs(sizes[width] - target))


def number_of_parameters(module: torch.nn.Module) -> int:
    """Of all tensors that are trained."""
    return sum(parameter.numel() for parameter in module.parameters())
