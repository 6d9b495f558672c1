"""`tessella evaluate`."""

from dataclasses import asdict, dataclass, field
from json import dumps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

if TYPE_CHECKING:
    from tessella.evaluation import AuditResult, Evaluation

SAMPLES = 100
TEXT_SAMPLES = 20


def evaluate(
    model: tyro.conf.Positional[Path],
    data: Path | None = None,
    samples: int | None = None,
    part: Literal["test", "validation", "train"] = "test",
    rows: int = 0,
    audit: bool = False,
    device: Literal["cpu", "cuda"] = "cpu",
    seed: int = 0,
    json: bool = False,
    record: Path | None = None,
) -> None:
    """How good a model's likelihood is, with its standard error; with --audit also whether it can be true.

    tessella evaluate runs/nursery --audit, or tessella evaluate model --data new.csv --audit. Exit code 2 if an audit
    fails.

    Args:
        model: folder that `tessella train`, `tessella fit` or `tessella reproduce text` made.
        data: for a model of `tessella fit`: a CSV or Parquet file with the same columns; without it, audits only. For a
            model of a text: another file of the same alphabet.
        samples: importance samples per row; more give a tighter bound. Without it 100, what the fitted table uses, or
            20 for the windows of a text.
        part: for a run of `tessella train`: which part of its data.
        rows: only the first so many rows; 0 for all.
        audit: also check that probabilities sum or integrate to one, that no entropy floor is passed, how loose the
            bound is, and that the rows which the model draws have the probabilities that it gives.
        device: where to compute.
        seed: for a run: of the importance samples; a fitted table has its own.
        json: print as JSON.
        record: write the result there as JSON, for results/.
    """
    from tessella import records
    from tessella.estimators.saving import DESCRIPTION
    from tessella.runs import is_text_run

    if (model / DESCRIPTION).exists():
        found = _of_fit(model, data, samples, rows, audit, device)
    elif is_text_run(model):
        found = _of_text(model, data, samples or TEXT_SAMPLES, part, rows, audit, device, seed)
    elif data is not None:
        raise ValueError(f"data: got {data} for a model of `tessella train` in {model}; expected one of `tessella fit`")
    else:
        found = _of_run(model, samples or SAMPLES, part, rows, audit, device, seed)
    print(dumps(found.measured, indent=1) if json else found)
    if record is not None:
        records.write(record, found.record | found.measured)
        if not json:
            print(f"record: {record}")
    if any(one.passed is False for one in found.audits):
        raise SystemExit(2)


@dataclass(frozen=True)
class _Found:
    """What was evaluated, in words, and what came of it."""

    title: str
    evaluation: "Evaluation | None"
    audits: "list[AuditResult]"
    record: dict[str, Any] = field(default_factory=dict)
    """What a record says besides: where the numbers come from."""

    def __str__(self) -> str:
        return "\n".join(map(str, filter(None, [self.title, self.evaluation, *self.audits])))

    @property
    def measured(self) -> dict[str, Any]:
        """Numbers in JSON's types, null where there is none."""
        said = asdict(self.evaluation) if self.evaluation else {}
        if said:
            said["evaluation_seconds"] = said.pop("seconds")  # of a record, `seconds` is the training
        numbers = {name: None if isinstance(x, float) and not isfinite(x) else x for name, x in said.items()}
        return {**numbers, "audits": [asdict(one) for one in self.audits]}


def _of_run(folder: Path, samples: int, part: str, rows: int, audit: bool, device: str, seed: int) -> _Found:
    import torch

    from tessella.cli.tables import find_table
    from tessella.evaluation import evaluate as measure
    from tessella.models.restoring import sound
    from tessella.runs import audits, load_run, record_of
    from tessella.runs.run import named

    torch.manual_seed(seed)
    run = load_run(folder, device)
    table = find_table(run.config.data, run.encoding)
    chosen = table.parts[part].to(device)
    batch = chosen.batch(torch.arange(rows or len(chosen), device=device)[: len(chosen)])
    with sound("log-likelihood"):
        result = measure(run.model, batch, samples, table.entropy_floor)
    found = audits.audit(run, result, samples) if audit else []
    partial = f"\npartial data: {table.partial}" if table.partial else ""
    title = f"{table.name}, {part} part, {named(run.config.model)['method']}{partial}"
    return _Found(title, result, found, record_of(run, table, part=part))


def _of_text(
    folder: Path, data: Path | None, samples: int, part: str, rows: int, audit: bool, device: str, seed: int
) -> _Found:
    from math import log

    import torch

    from tessella import records
    from tessella.data import text_of_file
    from tessella.evaluation import evaluate as measure
    from tessella.evaluation import sandwich_audit
    from tessella.runs import load_text_run

    torch.manual_seed(seed)
    run = load_text_run(folder, device)
    text = run.config.data.load(run.alphabet) if data is None else text_of_file(data, run.alphabet)
    windows = text.windows(part, run.config.data.length)
    (batch,) = windows.to(device).batch(torch.arange(len(windows))[: rows or None])
    result = measure(run.model, (batch.long(),), samples)
    unit = run.config.data.length * log(2)
    partial = f"\npartial data: {text.partial}" if text.partial else ""
    title = (
        f"{text.name}, {part} part, windows of {run.config.data.length} characters: {result.iw_nll / unit:.4f} +- "
        f"{result.stderr / unit:.4f} bits per character{partial}"
    )
    record = {"data": text.name, "partial": text.partial, "part": part, "bpc": result.iw_nll / unit}
    audits = [sandwich_audit(run.model, samples=samples)] if audit else []
    return _Found(title, result, audits, record | records.provenance(seed))


def _of_fit(
    folder: Path, data: Path | None, samples: int | None, rows: int, audit: bool, device: Literal["cpu", "cuda"]
) -> _Found:
    from tessella import records
    from tessella.cli.files import Schema, read_table
    from tessella.estimators import TabularFlow, audits

    if data is None and not audit:
        raise ValueError(f"data, audit: got neither for {folder}; expected a file to evaluate, --audit, or both")
    flow, result = TabularFlow.load(folder, device), None
    if data is not None:
        table = read_table(data, schema=Schema.of_model(flow.schema_, flow.columns_))
        result = audits.measure(flow, table[:rows] if rows else table, samples)
    found = audits.audit(flow, samples) if audit else []
    title = f"{folder}, a table of {len(flow.columns_)} columns" + (f", on the rows of {data}" if data else "")
    return _Found(title, result, found, {"data": str(data) if data else None, **records.provenance(flow.seed_)})
