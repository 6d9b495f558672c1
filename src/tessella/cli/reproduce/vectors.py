"""`tessella reproduce continuous`."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from tessella.paper.effort import Effort
from tessella.paper.vectors import Method, Preset

EFFORT = Effort()


def continuous(
    data: Literal["power", "gas", "hepmass", "miniboone", "bsds300"],
    method: Method,
    preset: Preset = "best",
    effort: Annotated[Effort, tyro.conf.arg(name="")] = EFFORT,
    out: Path = Path("runs/continuous"),
    results: Path = Path("results"),
    change: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
    variant: str = "",
) -> None:
    """Table 4: one method on one continuous table, exact NLL of all test rows; a record in results/continuous.

    Args:
        data: which table; docs/data.md says where its files are looked for.
        method: mixture: a disjoint mixture; one-cell: the same with one cell, which tells heavy tails from cells;
            spline: as many of its blocks without cells; coupling: the same with affine maps; autoregressive: a neural
            spline flow of zuko.
        preset: best: our choices; paper: the published sizes, for a GPU.
        effort: how long, on what, from which seed; the rows are fixed.
        out: a folder for the run is made there.
        results: folder of the records.
        change: fields to change, e.g. --set model.width=512 symmetries=none; with --variant.
        variant: what was changed, in a word, for the record's name.
    """
    from tessella import records
    from tessella.configs import parse_changes
    from tessella.paper.vectors import VectorTask, run_vectors

    if bool(change) != bool(variant):
        raise ValueError(f"set, variant: got {len(change)} changes and {variant!r}; expected both, or neither")
    task = VectorTask(data, method, preset, parse_changes(change), variant, **vars(effort))
    record = run_vectors(task, out / task.name)
    path = results / "continuous" / f"{task.name}.json"
    records.write(path, record)
    print(f"{task.name}: {record['nll']:.4f} +- {record['stderr']:.4f} nats, {record['test_rows']:,} test rows")
    if mean := record["symmetrized"]:
        print(f"its mean over symmetries ({record['symmetries']}): {mean['nll']:.4f} +- {mean['stderr']:.4f} nats")
    print(*(note for note in (record["partial"], record["rebuilt"]) if note), sep="\n")
    print(f"{record['steps']:,} steps, {record['seconds']:.1f} s, validation {record['validation_nll']:.4f}\n{path}")
