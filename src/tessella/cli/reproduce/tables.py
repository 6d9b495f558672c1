"""`tessella reproduce tables` and `tessella reproduce sampling-speed`."""

import re
from pathlib import Path
from typing import Annotated, Literal

import tyro

from tessella.paper.effort import Effort
from tessella.paper.tables.recipes import Method, Preset

EFFORT = Effort()


def tables(
    data: Literal["connect4", "forests", "mushroom", "nursery", "pokerhands", "uscensus90"],
    method: Method,
    simulated: Annotated[bool, tyro.conf.arg(aliases=["--dealt"])] = False,
    preset: Preset = "best",
    effort: Annotated[Effort, tyro.conf.arg(name="")] = EFFORT,
    out: Path = Path("runs/tables"),
    results: Path = Path("results"),
    test_rows: int = 10_000,
    samples: int = 100,
    change: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
    ablation: str = "",
    variant: str = "",
) -> None:
    """Table 1: one method on one table, the same rows, splits and evaluation for all; a record in results/tables.

    Args:
        data: which table.
        method: a dequantizer with the preset's density, a baseline of the paper, or what one would use instead.
        simulated: pokerhands: simulate the hands (their distribution is known) instead of reading the file.
        preset: best: our choices, dequantizers learned from scratch, for a GPU; joined: on connect4, forests and
            pokerhands, columns that say one thing together are one variable; blind: flows whose couplings know no
            cells; affine: those with affine couplings; mixture-start: Voronoi from a fitted mixture of categoricals, on
            a CPU; small: flows or autoregressive from scratch, on a CPU; paper: the published architecture and budget,
            for a GPU.
        effort: how long, on what, from which seed; the splits are fixed.
        out: a folder for the run is made there.
        results: folder of the records.
        test_rows: evaluate at most the first so many test rows.
        samples: importance samples per test row.
        change: fields to change, e.g. --set model.cells.dim=2 training.batch_size=128.
        ablation: name of a group; the record goes to results/ablations instead.
        variant: with --ablation: what was changed, in words.
    """
    from tessella import records
    from tessella.configs import parse_changes
    from tessella.paper.tables.run import TableTask, run_table
    from tessella.runs import DataConfig

    if bool(ablation) != bool(variant) or (change and not ablation):
        raise ValueError(
            f"ablation, variant, set: got {ablation!r}, {variant!r} and {len(change)} changes; expected a group and a "
            "variant together, and both where fields are changed, so that the record says what it is"
        )
    rows = DataConfig(data, simulated, joined=preset == "joined")
    task = TableTask(rows, method, preset, test_rows, samples, parse_changes(change), **vars(effort))
    name = re.sub("[^a-z0-9]+", "-", f"{ablation} {variant} {task.name}".lower()).strip("-")
    record = run_table(task, out / name)
    if ablation:
        record |= {"ablation": ablation, "variant": variant, "changes": dict(task.changes)}
    path = results / ("ablations" if ablation else "tables") / f"{name}.json"
    records.write(path, record)
    kind = "exact" if record["exact"] else f"IW-{record['iw_samples']}, ELBO {record['elbo_nll']:.4f}"
    floor = (
        "no entropy floor known" if record["entropy_floor"] is None else f"entropy floor {record['entropy_floor']:.4f}"
    )
    print(f"{name}: {record['iw_nll']:.4f} +- {record['stderr']:.4f} nats ({kind}; {floor})")
    started = "" if record["initial_nll"] is None else f" ({record['initial_nll']:.4f} before the first update)"
    print(f"{record['steps']:,} steps, {record['seconds']:.1f} s, validation {record['validation_nll']:.4f}{started}")
    print(path if record["exact"] else f"{record['sandwich']['message']}\n{path}")


def sampling_speed(
    data: Literal["connect4", "forests", "mushroom", "nursery", "pokerhands"] = "mushroom",
    rows: tuple[int, ...] = (1, 16, 256, 4_096, 16_384),
    results: Path = Path("results"),
    accelerator: Literal["auto", "cpu", "cuda"] = "auto",
    seed: int = 0,
) -> None:
    """Rows per second: the flows draw many variables in a pass, the causal transformer one after another.

    All in one run, on the same device, as many rows at a time, at the sizes of the presets, with untrained weights, on
    which the speed does not depend. Writes results/sampling-speed.json.

    Args:
        data: which table's variables.
        rows: how many at a time, each number in turn.
        results: folder of the record.
        accelerator: where.
        seed: of the weights.
    """
    from tessella import records
    from tessella.paper.tables.speed import measure_sampling

    record = measure_sampling(data, rows, accelerator, seed)
    for one in record["measured"]:
        print(f"{one['method']} ({one['preset']}), {one['passes']} passes:")
        for at_once, speed in zip(rows, one["rows_per_second"], strict=True):
            print(f"{at_once:12,} at a time {speed:12,.0f} rows per second")
    records.write(results / "sampling-speed.json", record)
