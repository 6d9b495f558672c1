"""`tessella reproduce continuous`."""

from pathlib import Path
from typing import Literal


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
