"""`tessella evaluate`."""

from dataclasses import asdict
from pathlib import Path
from typing import Literal

import tyro


def evaluate(
    run: tyro.conf.Positional[Path],
    samples: int = 100,
    part: Literal["test", "validation", "train"] = "test",
    rows: int = 0,
    audit: bool = False,
    device: Literal["cpu", "cuda"] = "cpu",
    seed: int = 0,
    record: Path | None = None,
) -> None:
    """Evaluate a run: ELBO, importance-weighted bound, standard error, floor; with --audit also whether it can be true.

    Args:
        run: run folder, as `tessella train` makes it.
        samples: importance samples per row; more samples give a tighter bound.
        part: which part of the data.
        rows: only the first so many rows; 0 for all.
        audit: also check that probabilities sum to one, that no floor is passed, and how tight the bound is.
        device: where to compute.
        seed: of the importance samples.
        record: write the result there as JSON, for results/.
    """
    import torch

    from tessella import records
    from tessella.evaluation import evaluate as measure
    from tessella.evaluation import floor_audit, sandwich_audit, sum_to_one_audit
    from tessella.experiments import load_run
    from tessella.experiments.run import record_of

    torch.manual_seed(seed)
    loaded = load_run(run, device)
    codes = getattr(loaded.table, part)
    codes = (codes[:rows] if rows else codes).to(device)
    result = measure(loaded.model, codes, samples, loaded.table.floor)
    print(f"{loaded.table.name}, {part} part, {loaded.config.model.dequantizer} dequantization\n{result}")
    if loaded.table.partial:
        print(f"partial data: {loaded.table.partial}")
    audits = []
    if audit:
        found = [
            sum_to_one_audit(loaded.model, loaded.table.schema.counts, samples),
            floor_audit(result),
            sandwich_audit(loaded.model, samples=samples),
        ]
        audits = [one for one in found if one is not None]
        print(*audits, sep="\n")
    if record is not None:
        measured = {**asdict(result), "evaluation_seconds": result.seconds, "audits": [asdict(one) for one in audits]}
        del measured["seconds"]  # of a record, `seconds` is the training
        records.write(record, record_of(loaded, part=part, **measured))
        print(f"record: {record}")
    if not all(one.passed for one in audits):
        raise SystemExit(2)
