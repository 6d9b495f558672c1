"""`tessella reproduce mixture-2d`."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tessella.training import TrainingConfig


def mixture_2d(
    data: str = "all",
    out: Path = Path("runs/reproduce"),
    results: Path | None = None,
    steps: int = 0,
    seed: int = 0,
    accelerator: Literal["auto", "cpu", "cuda"] = "cpu",
    progress: bool = True,
) -> None:
    """Figure 6: 2-D densities by a disjoint mixture, by a coupling flow and by a mixture that cuts each dimension.

    All have the same size and are trained alike, at two learning rates, of which the validation rows choose one; about
    an hour on one core. Runs that are finished are only drawn, on any machine; without matplotlib nothing is drawn.

    Args:
        data: eight_gaussians, pinwheel, rings, two_spirals, checkerboard, two_moons; all of them, a picture of the
            densities at the walls and one of cells while they learn, with "all".
        out: folder for the runs and the pictures.
        results: folder for the JSON records; `out` without it.
        steps: train for so many steps instead of the preset's.
        seed: of everything.
        accelerator: where to train.
        progress: show progress bars.
    """
    from dataclasses import replace

    from tessella.paper.figures.style import can_draw
    from tessella.paper.figures.toys import draw_moments, draw_walls
    from tessella.paper.moments import moments
    from tessella.paper.toys import FIGURE_6, MIXTURE, TRAINING

    training = replace(TRAINING, seed=seed, steps=steps or TRAINING.steps, accelerator=accelerator, progress=progress)
    for toy in FIGURE_6 if data == "all" else [data]:
        _one_toy(toy, out, results or out, training)
    if not can_draw():
        print(f"no pictures: matplotlib is not installed here; the same command draws them from the runs in {out}")
    elif data == "all":
        print(draw_walls(out / "mixture-walls.png"))
        print(draw_moments(out / "mixture-moving-cells.png", moments(MIXTURE, out / "mixture-moments", seed)))


def _one_toy(data: str, out: Path, results: Path, training: "TrainingConfig") -> None:
    from tessella import records
    from tessella.paper.figures.style import can_draw
    from tessella.paper.figures.toys import draw_comparison
    from tessella.paper.toys import MIXTURE, MODELS, compare, finished, toy_rows

    folder = out / f"mixture-2d-{data}"
    only_read = finished(folder, training.steps)
    compared = compare(data, MIXTURE, training, folder)
    if not only_read:  # a record says where its runs were made
        records.write(results / f"mixture-2d-{data}.json", compared.record())
    for name in MODELS:
        chosen = getattr(compared, name)
        print(
            f"{data}, {name}: test NLL {chosen.best.nll:.3f} +- {chosen.best.stderr:.3f} nats; "
            f"{chosen.best.parameters:,} parameters, {chosen.best.fit.steps:,} steps, {chosen.seconds:.0f} s"
        )
    if can_draw():
        print(draw_comparison(out / f"mixture-{data}.png", compared, toy_rows(data)["test"].tensors[0]))
