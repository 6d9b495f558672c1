"""`tessella reproduce mixture-2d`."""

from pathlib import Path


def mixture_2d(
    data: str = "all", out: Path = Path("runs/reproduce"), results: Path | None = None, steps: int = 0, seed: int = 0
) -> None:
    """Figure 6: 2-D densities by a coupling flow and by a disjoint mixture of the same size, trained alike.

    Both are trained at two learning rates, of which the validation rows choose one; about 13 minutes on one core.

    Args:
        data: eight_gaussians, pinwheel, rings, two_spirals, checkerboard, two_moons; all of them, and a picture of the
            densities at the walls, with "all".
        out: folder for the runs and the pictures.
        results: folder for the JSON records; `out` without it.
        steps: train for so many steps instead of the preset's.
        seed: of everything.
    """
    from tessella.experiments.mixtures import FIGURE_6
    from tessella.report.mixtures import draw_walls

    if data != "all":
        _one_toy(data, out, results or out, steps, seed)
        return
    for toy in FIGURE_6:
        _one_toy(toy, out, results or out, steps, seed)
    print(draw_walls(out / "mixture-walls.png"))


def _one_toy(data: str, out: Path, results: Path, steps: int, seed: int) -> None:
    from dataclasses import replace

    from tessella import records
    from tessella.experiments.mixtures import MIXTURE, TRAINING, compare, toy_rows
    from tessella.report.mixtures import draw_comparison

    training = replace(TRAINING, seed=seed, steps=steps or TRAINING.steps)
    compared = compare(data, MIXTURE, training, out / f"mixture-2d-{data}")
    mixture, coupling = compared.mixture.best, compared.coupling.best
    records.write(results / f"mixture-2d-{data}.json", compared.record())
    picture = draw_comparison(out / f"mixture-{data}.png", compared, toy_rows(data)["test"])
    print(
        f"{data}: test NLL {mixture.nll:.3f} +- {mixture.stderr:.3f} nats with cells, {coupling.nll:.3f} +- "
        f"{coupling.stderr:.3f} without; {mixture.parameters:,} and {coupling.parameters:,} parameters, "
        f"{mixture.fit.steps:,} steps, {compared.mixture.seconds:.0f} and {compared.coupling.seconds:.0f} s"
    )
    print(picture)
