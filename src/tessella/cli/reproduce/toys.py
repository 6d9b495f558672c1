"""`tessella reproduce mixture-2d`."""

from pathlib import Path


def mixture_2d(
    data: str = "all", out: Path = Path("runs/reproduce"), results: Path | None = None, steps: int = 0, seed: int = 0
) -> None:
    """Figure 6: 2-D densities by a disjoint mixture, by a coupling flow and by a mixture that cuts each dimension.

    All have the same size and are trained alike, at two learning rates, of which the validation rows choose one; about
    25 minutes on one core.

    Args:
        data: eight_gaussians, pinwheel, rings, two_spirals, checkerboard, two_moons; all of them, and a picture of the
            densities at the walls, with "all".
        out: folder for the runs and the pictures.
        results: folder for the JSON records; `out` without it.
        steps: train for so many steps instead of the preset's.
        seed: of everything.
    """
    from tessella.paper.figures.toys import draw_walls
    from tessella.paper.toys import FIGURE_6

    if data != "all":
        _one_toy(data, out, results or out, steps, seed)
        return
    for toy in FIGURE_6:
        _one_toy(toy, out, results or out, steps, seed)
    print(draw_walls(out / "mixture-walls.png"))


def _one_toy(data: str, out: Path, results: Path, steps: int, seed: int) -> None:
    from dataclasses import replace

    from tessella import records
    from tessella.paper.figures.toys import draw_comparison
    from tessella.paper.toys import MIXTURE, TRAINING, compare, toy_rows

    training = replace(TRAINING, seed=seed, steps=steps or TRAINING.steps)
    compared = compare(data, MIXTURE, training, out / f"mixture-2d-{data}")
    records.write(results / f"mixture-2d-{data}.json", compared.record())
    picture = draw_comparison(out / f"mixture-{data}.png", compared, toy_rows(data)["test"].tensors[0])
    for name in ("mixture", "coupling", "dimensionwise"):
        chosen = getattr(compared, name)
        print(
            f"{data}, {name}: test NLL {chosen.best.nll:.3f} +- {chosen.best.stderr:.3f} nats; "
            f"{chosen.best.parameters:,} parameters, {chosen.best.fit.steps:,} steps, {chosen.seconds:.0f} s"
        )
    print(picture)
