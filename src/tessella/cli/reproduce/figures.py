"""`tessella reproduce EXPERIMENT`."""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

import tyro

from tessella.cli.reproduce.tables import sampling_speed, tables
from tessella.cli.reproduce.vectors import continuous, mixture_2d


def quantized_2d(
    data: str = "pinwheel",
    out: Path = Path("runs/reproduce"),
    results: Path | None = None,
    steps: int = 0,
    samples: int = 100,
    seed: int = 0,
) -> None:
    """Figures 4 and 5: a 2-D density quantized to 91 x 91 categories whose order the model is not told.

    Measures the divergence from the known law, beside that of independent variables.

    Args:
        data: pinwheel, eight_gaussians, two_moons, checkerboard, rings, two_spirals, swiss_roll.
        out: folder for the run and the pictures.
        results: folder for the JSON record; the run's own without it.
        steps: train for so many steps instead of the preset's.
        samples: importance samples per cell of the final comparison.
        seed: of everything.
    """
    import torch

    from tessella import records
    from tessella.paper.figures.quantized import draw_learned_cells, draw_quantized
    from tessella.paper.presets import PRESETS
    from tessella.paper.quantized import compare_with_target
    from tessella.runs import train_run
    from tessella.runs.run import QUANTIZED, DataConfig, record_of

    out = out / f"quantized-2d-{data}"
    preset = PRESETS["quantized-2d"]
    training = replace(preset.training, seed=seed, steps=steps or preset.training.steps)
    config = replace(preset, data=DataConfig(QUANTIZED + data), training=training)
    run, fitted = train_run(config, out)
    torch.manual_seed(seed)
    result, probabilities, target = compare_with_target(run, samples)
    codes = run.model.sample(100_000)
    bins = len(target.probabilities)
    frequencies = torch.bincount(codes[:, 0] * bins + codes[:, 1], minlength=bins**2).view(bins, bins) / len(codes)
    title = f"{data}: KL {result.kl:.3f} nats (independent variables: {result.kl_independent:.3f})"
    pictures = [
        draw_quantized(out / f"{data}.png", target.probabilities, frequencies, probabilities, title),
        draw_learned_cells(out / f"{data}-cells.png", run.model),
    ]
    records.write((results or out) / f"quantized-2d-{data}.json", record_of(run, **asdict(result)))
    print(f"{title}\nmass of all cells {result.mass:.4f}; trained {fitted.seconds:.0f} s, {fitted.steps:,} steps")
    print(*pictures, sep="\n")


def dequantizers(out: Path = Path("runs/reproduce"), seed: int = 0) -> None:
    """Figure 3: the geometries of the dequantizers.

    Args:
        out: folder for the picture.
        seed: of the random cells.
    """
    from tessella.paper.figures.dequantizers import draw_dequantizers

    print(f"Figure 3: {draw_dequantizers(out / 'dequantizers.png', seed)}")


def cell_map(out: Path = Path("runs/reproduce"), seed: int = 2) -> None:
    """Figure 1: a density on the plane pushed into a cell of a tessellation, and the audit of the map.

    Args:
        out: folder for the picture.
        seed: of the tessellation and the audit's points.
    """
    import torch

    from tessella import Box, CellBijection, Voronoi
    from tessella.bijections.audit import audit_cells
    from tessella.paper.figures.cells import draw_map_into_cell

    torch.manual_seed(seed)
    step = torch.tensor([-2.0, 0.0, 2.0])
    anchors = torch.cartesian_prod(step, step) + 0.8 * (torch.rand(9, 2) - 0.5) * 2
    tessellation = Voronoi(anchors, box=Box.cube(3.0, 2))
    bijection, cell = CellBijection(tessellation), 4
    print("A Voronoi tessellation of the plane, 9 cells in a box; the map into its cells, 100,000 points:\n")
    print(audit_cells(bijection.double()))
    path = draw_map_into_cell(out / "map-into-cell.png", bijection.float(), cell, (-3.2, 3.2, -3.2, 3.2))
    print(f"\nFigure 1: {path}")


# A further experiment is a function with a docstring and a line here.
EXPERIMENTS: dict[str, Callable[..., None]] = {
    "tables": tables,
    "cell-map": cell_map,
    "quantized-2d": quantized_2d,
    "dequantizers": dequantizers,
    "mixture-2d": mixture_2d,
    "continuous": continuous,
    "sampling-speed": sampling_speed,
}


def _chosen(experiment: Callable[..., None]) -> Callable[..., Callable[[], None]]:
    """The experiment with its arguments, not yet run: errors belong to it, not to the parsing of the command line."""

    @wraps(experiment)
    def with_arguments(*args: Any, **kwargs: Any) -> Callable[[], None]:
        return partial(experiment, *args, **kwargs)

    return with_arguments


if TYPE_CHECKING:
    Experiment = Callable[[], None]
else:
    Experiment = Union[  # noqa: UP007  # its members are not known before it runs
        tuple(
            Annotated[Any, tyro.conf.subcommand(name=name, constructor=_chosen(experiment))]
            for name, experiment in EXPERIMENTS.items()
        )
    ]


def reproduce(experiment: Experiment) -> None:
    """Reproduce an experiment of the paper, with pictures and a record of the numbers.

    Args:
        experiment: which; `tessella reproduce EXPERIMENT --help` says what it takes.
    """
    experiment()
