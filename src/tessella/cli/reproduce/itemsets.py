"""`tessella reproduce itemsets`."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from tessella.paper.effort import Effort
from tessella.paper.itemsets.recipes import Method, Preset

EFFORT = Effort()


def itemsets(
    data: Literal["retail", "accidents"],
    method: Method,
    preset: Preset = "best",
    effort: Annotated[Effort, tyro.conf.arg(name="")] = EFFORT,
    out: Path = Path("runs/itemsets"),
    results: Path = Path("results"),
    test_rows: int = 20_000,
    samples: int = 40,
    change: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
    variant: str = "",
) -> None:
    """Table 2: one method on sets of items, the same sets, splits and evaluation for all; a record in results/sets.

    Args:
        data: which sets; docs/data.md says where their files are looked for.
        method: voronoi: a continuous flow through Voronoi cells; coupling: the same cells, discrete time; simplex,
            binary-argmax: other dequantizers; the others are exact models of sets.
        preset: best: our choices; base: the base of the flows alone; gaussian: flows from a Gaussian; paper: the
            published architecture, for a GPU.
        effort: how long, on what, from which seed; the splits are fixed.
        out: a folder for the run is made there.
        results: folder of the records.
        test_rows: evaluate at most the first so many test sets.
        samples: importance samples per test set.
        change: fields to change, e.g. --set model.cells.dim=2; with --variant.
        variant: what was changed, in a word, for the record's name.
    """
    from tessella import records
    from tessella.configs import parse_changes
    from tessella.paper.itemsets.run import SetTask, run_itemsets

    if bool(change) != bool(variant):
        raise ValueError(f"set, variant: got {len(change)} changes and {variant!r}; expected both, or neither")
    task = SetTask(data, method, preset, test_rows, samples, parse_changes(change), variant, **vars(effort))
    record = run_itemsets(task, out / task.name)
    path = results / "sets" / f"{task.name}.json"
    records.write(path, record)
    kind = "exact" if record["exact"] else f"IW-{record['iw_samples']}, ELBO {record['elbo_nll']:.4f}"
    print(f"{task.name}: {record['iw_nll']:.4f} +- {record['stderr']:.4f} nats per set ({kind})")
    started = "" if record["initial_nll"] is None else f" ({record['initial_nll']:.4f} before the first update)"
    print(f"{record['steps']:,} steps, {record['seconds']:.1f} s, validation {record['validation_nll']:.4f}{started}")
    print(*filter(None, [record["partial"], "" if record["exact"] else record["sandwich"]["message"], path]), sep="\n")
