"""`tessella fit`: a table of your own, CSV or Parquet, as a whole or streamed."""

from collections import Counter
from collections.abc import Iterator
from json import dumps
from pathlib import Path
from shlex import quote
from shutil import rmtree
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from tessella.cli.files import CsvOptions, Schema, TableFile

if TYPE_CHECKING:
    from tessella.estimators import TabularFlow
    from tessella.estimators.overview import Overview

ColumnType = Literal["categorical", "ordinal", "boolean", "count", "grid", "continuous", "date"]
REPORT = "report.html"
SECONDS_FOR_MIXTURE, SECONDS_PER_COLUMN = 30.0, 0.1  # of the report, about
FOR_COLUMN, FOR_CELL, FOR_PAIR = 0.022, 1.5e-6, 3e-7  # seconds to prepare on one core: pairs are those of attention
VALIDATION_ROWS = 20_000  # at most, that a model is judged by
CHECKPOINTS = "training"  # in the model's folder, as long as it trains
WIDEST = 23  # of the names in a comparison
NAMED = 50  # columns, at most, that are named with their types


def fit(
    data: tyro.conf.Positional[Path],
    out: Path = Path("model"),
    minutes: float = 5.0,
    test: float = 0.1,
    types: dict[str, ColumnType] | None = None,
    density: Literal["auto", "autoregressive", "blocks", "coupling"] = "auto",
    device: Literal["auto", "cpu", "cuda"] = "auto",
    threads: int | None = None,
    memory: float | None = None,
    seed: int = 0,
    json: bool = False,
    csv: Annotated[CsvOptions, tyro.conf.arg(name="")] = CsvOptions(),  # noqa: B008  # it is frozen
) -> None:
    """Learn the joint likelihood of a table's rows: tessella fit data.csv --out model.

    Column types are inferred; missing values are modelled. Ctrl-C keeps the best model so far; a fit that was killed
    continues when the same command is given again. The likelihood of rows that were kept aside is compared with that of
    baselines, and a report written: report.html beside the model. Then: tessella score, anomalies, sample, impute,
    predict.

    Args:
        data: a CSV or Parquet file, or a folder of Parquet files. What is larger than memory is streamed from Parquet.
        out: folder for the model.
        minutes: how long to train at most; the comparison and the report take a little longer.
        test: share of the rows that is kept aside for the comparison.
        types: types of some columns, where the guess is wrong: --types age continuous zip categorical.
        density: of the rows. auto: exact, one column after another in any order, or a mixture of categoricals where
            that is better; coupling: a flow through cells; blocks: groups of columns.
        device: where to train.
        threads: of training on a CPU; without it as many as short trials find fastest.
        memory: gigabytes that the table may take; a larger one, in Parquet files, is streamed. Half of what the machine
            has without it.
        seed: of split and training.
        json: print the result as JSON, and nothing else.
        csv: how a CSV file is written.
    """
    from tessella.estimators import TabularFlow
    from tessella.progress import say
    from tessella.training.processes import own_rank

    first = own_rank() == 0  # of the processes that torchrun started: all train, one speaks and writes
    flow = TabularFlow(
        types,
        density=density,
        time_budget=60 * minutes,
        test_fraction=test,
        device=device,
        threads=threads,
        memory=memory,
        random_state=seed,
        progress=not json,
    )
    file = TableFile(data, csv, visible=first and not json)
    if file.larger_than(memory):
        table, schema, notes = file.survey(types, seed, flow.validation_fraction, test)
        notes = [_streaming(file.rows, len(file.parquet.names), memory), *notes]
    else:
        table, schema, notes = file.learn(types)
    rows = len(table)
    for note in [] if json or not first else [*notes, *expectations(rows, table.num_columns, minutes)]:
        say(note)
    if not first:
        flow.fit_resumable(table, out / CHECKPOINTS)
        return
    overview = fit_and_report(flow, table, out, schema)
    if json:
        kinds = {column.name: column.kind for column in flow.columns_}
        said = {"rows": rows, "columns": kinds, "validation_nll": flow.best_validation_, "stopped": flow.stopped_}
        said |= {"density": flow.density_, "exact": flow.exact_, "learning": overview.learning}
        said |= {"threads": flow.threads_, "left_out": schema.left_out, "notes": notes}
        held_out = {"part": overview.held_out, "rows": overview.scored_rows, "likelihoods": overview.likelihoods}
        print(dumps({**said, "held_out": held_out, "model": str(out), "report": str(out / REPORT)}, indent=1))
        return
    print(f"{rows:,} rows; columns: {_kinds(flow)}")
    print(f"trained {overview.seconds:.0f} s, stopped by {overview.stopped}\n\n{comparison(overview)}\n")
    print(f"model: {out}\nreport: {out / REPORT}")
    print("next: " + ", or ".join(next_commands(out, data)))


def _kinds(flow: "TabularFlow") -> str:
    """The type of each column; of very many, how many there are of each type."""
    if len(flow.columns_) <= NAMED:
        return ", ".join(f"{column.name} ({column.kind})" for column in flow.columns_)
    counts = Counter(column.kind for column in flow.columns_)
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())


def next_commands(out: Path, data: Path) -> tuple[str, str]:
    """What to type next, as a shell understands it."""
    folder, file = quote(str(out)), quote(str(data))
    return f"tessella anomalies {folder} {file}", f"tessella sample {folder} --rows 5"


def _streaming(rows: int, columns: int, memory: float | None) -> str:
    """Why a table is streamed."""
    from tessella.estimators.streaming import budget, estimate

    needs, has = estimate(rows, columns) / 1e9, budget(memory) / 1e9
    return f"streaming {rows:,} rows: as a whole they would take about {needs:,.3g} GB, and {has:,.3g} GB are for them"


def expectations(rows: int, columns: int, minutes: float) -> Iterator[str]:
    """How long it will take, about: the transformer of the comparison has as long as the model.

    >>> for line in expectations(200, 500, 0.05): print(line)
    200 rows, 500 columns: 0.05 min of training, then up to 1.4 min of comparison and report
    preparing them takes about 13 s on a CPU: little will be learned; take more --minutes, or fewer columns
    """
    after = 60 * minutes + SECONDS_FOR_MIXTURE + SECONDS_PER_COLUMN * columns
    yield (
        f"{rows:,} rows, {columns:,} columns: {minutes:g} min of training, then up to {after / 60:.1f} min of "
        "comparison and report"
    )
    before = columns * (FOR_COLUMN + FOR_CELL * rows + FOR_PAIR * columns * min(rows / 10, VALIDATION_ROWS))
    if before > 60 * minutes:
        yield (
            f"preparing them takes about {before:.0f} s on a CPU: little will be learned; take more --minutes, or "
            "fewer columns"
        )


def fit_and_report(flow: "TabularFlow", table: Any, out: Path, schema: Schema | None = None) -> "Overview":
    """Fit, save the model with how its table was read, and beside it what the report shows and the report.

    That the folder can be written is known before training; killed, the same fit into the same folder continues.
    """
    from tessella.estimators.overview import gather
    from tessella.estimators.saving import save_somewhere
    from tessella.folders import check_room, claimed
    from tessella.progress import say
    from tessella.report.page import write_page

    with claimed(out):
        check_room(Path(gettempdir()))  # for the models that are compared with
        flow.fit_resumable(table, out / CHECKPOINTS)
        flow.schema_ = schema.to_json() if schema else None
        save_somewhere(flow, out)
        rmtree(out / CHECKPOINTS, ignore_errors=True)
        if flow.progress:
            say("comparing with baselines, writing the report ...")
        overview = gather(flow, table)
        overview.write(out)
        write_page(out, out / REPORT, model=str(out))
    return overview


def comparison(overview: "Overview") -> str:
    """The held-out likelihoods as lines of text, the best first."""
    part = "test rows that nothing was learned from" if overview.held_out == "test" else "validation rows"
    said = overview.learning
    added = f"learning brought {said['before'] - said['after']:.3f}" if said["after"] < said["before"] else "kept"
    lines = [
        f"the model is {overview.model}",
        f"it began as {said['start']}: {said['before']:.3f} nats per validation row; {added}: {said['after']:.3f}",
        f"negative log-likelihood of {overview.scored_rows:,} {part}, in nats per row (lower is better):",
    ]
    for one in sorted(overview.likelihoods, key=lambda one: one["nll"]):
        sign = "=" if one["exact"] else "<="
        lines.append(f"  {one['name']:<{WIDEST}} {sign:>2} {one['nll']:8.3f} +- {one['error']:.3f}")
    return "\n".join(lines)
