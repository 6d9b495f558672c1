"""`tessella reproduce mixture-2d` and `tessella reproduce continuous`."""

from pathlib import Path
from typing import Literal


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
    picture = draw_comparison(out / f"mixture-{data}.png", compared, toy_rows(data)["test"])
    for name in ("mixture", "coupling", "dimensionwise"):
        chosen = getattr(compared, name)
        print(
            f"{data}, {name}: test NLL {chosen.best.nll:.3f} +- {chosen.best.stderr:.3f} nats; "
            f"{chosen.best.parameters:,} parameters, {chosen.best.fit.steps:,} steps, {chosen.seconds:.0f} s"
        )
    print(picture)


def continuous(
    data: Literal["power", "gas", "hepmass", "miniboone", "bsds300"],
    method: Literal["mixture", "coupling", "spline"],
    preset: Literal["best", "paper"] = "best",
    minutes: float = 0.0,
    steps: int = 0,
    seed: int = 0,
    out: Path = Path("runs/continuous"),
    results: Path = Path("results"),
    accelerator: Literal["auto", "cpu", "cuda"] = "auto",
    tf32: bool = True,
    progress: bool = True,
    threads: int | None = None,
) -> None:
    """Table 4: one method on one continuous table, exact NLL of all test rows; a record in results/continuous.

    Args:
        data: which table; docs/data.md says where its files are looked for.
        method: a disjoint mixture; a coupling flow of as many blocks and parameters; a neural spline flow (zuko).
        preset: best: our choices; paper: the published sizes, for a GPU.
        minutes: train for about so long: steps are timed first, and as many planned as fit. 0 for the preset's steps.
        steps: train for exactly so many steps instead.
        seed: of initialisation and batches; the rows are fixed.
        out: a folder for the run is made there.
        results: folder of the records.
        accelerator: where to train and evaluate.
        tf32: train with TF32 products of matrices on a GPU; evaluation never uses them.
        progress: show a progress bar.
        threads: of training on a CPU; as many as a trial finds fastest without it.
    """
    from tessella import records
    from tessella.paper.vectors import VectorTask, run_vectors

    task = VectorTask(
        data,
        method,
        preset,
        minutes=minutes,
        steps=steps,
        seed=seed,
        accelerator=accelerator,
        tf32=tf32,
        progress=progress,
        threads=threads,
    )
    record = run_vectors(task, out / task.name)
    path = results / "continuous" / f"{task.name}.json"
    records.write(path, record)
    print(f"{task.name}: {record['nll']:.4f} +- {record['stderr']:.4f} nats, {record['test_rows']:,} test rows")
    print(*(note for note in (record["partial"], record["rebuilt"]) if note), sep="\n")
    print(f"{record['steps']:,} steps, {record['seconds']:.1f} s, validation {record['validation_nll']:.4f}\n{path}")
