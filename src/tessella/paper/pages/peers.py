"""docs/peers.md: `TabularFlow` beside other libraries, from the records that `python -m benchmarks.peers` writes."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from tessella.paper.pages.markdown import DASH, table
from tessella.paper.pages.records import Record, machine

LABELS = {
    "real": "other real rows",
    "tessella": "`TabularFlow`",
    "mostlyai": "`TabularARGN`",
    "mostlyai-one-order": "`TabularARGN`, one order",
    "mostlyai-discrete": "`TabularARGN`, one order, discrete",
    "sdv": "`GaussianCopulaSynthesizer`",
}

LIBRARIES = {
    "`TabularFlow`": ["tessella"],
    "`TabularARGN` (mostlyai-engine)": ["mostlyai", "mostlyai-one-order", "mostlyai-discrete"],
    "Gaussian copula (SDV)": ["sdv"],
    "other real rows": ["real"],
}

INTRODUCTION = """\
# Beside other libraries

Written by `tessella results` from the records of `python -m benchmarks.peers`. Tables of several kinds of columns, the
same training rows, minutes of training and threads for every method, each in a process of its own; it draws as many
rows as are held out. Mean ± standard deviation over runs with different seeds on the same rows; of a single run, ± the
error of the metric, which is **less** than runs differ by. Bold: the best of the methods, whether or not another one is
within the errors of it.

- **told apart**: AUC of gradient-boosted trees that tell drawn rows from held-out ones, by cross-validation. 0.5:
  they cannot; 1: always. A single column can give a method away, such as one with few values in a wide range.
- **use**: how well trees that learned from the drawn rows predict a column of held-out real ones: R² of a number, mean
  AUC of categories. Other real rows say what can be had from as many rows. Leaves are shrunk (`l2_regularization=1`)
  where categories are predicted: without that one rare category, badly predicted by chance, decided.
- **dependence**: mean difference between drawn and held-out rows in what pairs of columns tell of each other,
  I(a; b) / sqrt(H(a) H(b)). Other real rows say how much of it is chance.
- **copies**: share of the drawn rows that are equal to a training row in all columns. Other real rows say how many
  there are by nature.
- **rows a second**, drawn; of *training*, the seconds that it took with all that belongs to it, and of these the
  processor's: where they are fewer, others had it meanwhile, and the method had less than the minutes say.
- **nats**: mean negative log-likelihood of the held-out rows whose categories all occur in training, where the method
  has one that is of the values themselves.

`TabularARGN` (mostlyai-engine) and `GaussianCopulaSynthesizer` (SDV) are as they come, SDV with columns that it would
make up anew, such as names, taken for categories. SDV has no time limit and needs little. *One order*: `TabularARGN`
learns a single order of the columns, where by default it learns to draw any columns given any others, and rare values
are not replaced. *Discrete*: numbers of at most 1,000 different values are drawn from among these, too.
In trials neither was better in everything; all are shown, and its best of each metric is what others should be compared
with.

The defaults of `TabularFlow` were chosen in short trials on these tables, with held-out rows in sight: that flatters
it here.
"""


@dataclass(frozen=True)
class Metric:
    """A column of the table: how to read it from a run, how to print it, and what is best."""

    name: str
    read: Callable[[Record], float | None]
    digits: int
    better: Callable[[Sequence[float]], float] | None
    error: Callable[[Record], float | None] = lambda run: None


def _measured(key: str, name: str, better: Callable[[Sequence[float]], float]) -> Metric:
    return Metric(name, lambda run: run[key]["value"], 3, better, lambda run: run[key]["error"])


METRICS = (
    _measured("two_sample", "told apart", min),
    _measured("utility", "use", max),
    Metric("dependence", lambda run: run["dependence"], 4, min),
    Metric("copies", lambda run: run["copies"], 4, None),
    Metric("rows a second", lambda run: run.get("rows_per_second"), 0, max),
    Metric("training", lambda run: run.get("fit_seconds"), 0, None),
    Metric("processor", lambda run: run.get("fit_cpu_seconds"), 0, None),
    Metric("nats", lambda run: (run.get("likelihood") or {}).get("nll"), 2, None),
)


def peers_page(folder: Path, docs: Path) -> str:
    """The page that the records peers-*.json in `folder` give; `docs` is where it will stand."""
    paths = sorted(folder.glob("peers-*.json"))
    link = Path(os.path.relpath(folder, docs)).as_posix()
    sections = [_section(json.loads(path.read_text()), f"{link}/{path.name}") for path in paths]
    return "\n".join([INTRODUCTION, *(sections or ["No records yet.\n"])])


def peers_headline(folder: Path) -> str:
    """Both metrics of quality, table by table, as Markdown: of each other library its best setting, for each metric."""
    apart, use, *_ = METRICS
    lines = []
    for path in sorted(folder.glob("peers-*.json")):
        record = json.loads(path.read_text())
        for metric in (apart, use):
            cells = [_best(metric, record["methods"], library) for library in LIBRARIES]
            lines.append([f"{record['data'].capitalize()}, {metric.name}", *cells])
    return table(["", *LIBRARIES], lines)


def _best(metric: Metric, methods: dict[str, Record], library: str) -> str:
    """The best mean over the settings of a library."""
    runs = [methods[name]["runs"] for name in LIBRARIES[library] if name in methods]
    means = [mean(values) for one in runs if (values := _values(metric, one))]
    return f"{metric.better(means):.{metric.digits}f}" if metric.better and means else DASH


def _section(record: Record, link: str) -> str:
    setup, methods = record["setup"], {name: record["methods"][name] for name in LABELS if name in record["methods"]}
    columns = [_column(metric, methods) for metric in METRICS]
    lines = [[LABELS[name], *cells] for name, *cells in zip(methods, *columns, strict=True)]
    about = (
        f"{record['about']}. {setup['train']:,} training rows, {setup['held_out']:,} held out, {setup['columns']} "
        f"columns, `{setup['target']}` to predict; minutes: {setup['minutes']:g}, threads: {setup['threads']}. "
        f"{machine(record['hardware'])}; {_versions(methods)}. [Record]({link})."
    )
    return f"## {record['data'].capitalize()}\n\n{about}\n\n{table(['', *(one.name for one in METRICS)], lines)}"


def _column(metric: Metric, methods: dict[str, Record]) -> list[str]:
    """A cell for each method, the best in bold: real rows do not compete."""
    means = {name: mean(values) for name, method in methods.items() if (values := _values(metric, method["runs"]))}
    rivals = {name: value for name, value in means.items() if name != "real"}
    best = metric.better(list(rivals.values())) if metric.better and rivals else None
    texts = {name: _cell(metric, method["runs"]) for name, method in methods.items()}
    return [f"**{text}**" if name in rivals and rivals[name] == best else text for name, text in texts.items()]


def _cell(metric: Metric, runs: Sequence[Record]) -> str:
    values = _values(metric, runs)
    if not values:
        return DASH
    error = stdev(values) if len(values) > 1 else metric.error(runs[0])
    shown = f"{mean(values):,.{metric.digits}f}"
    return shown if error is None else f"{shown} ± {error:,.{metric.digits}f}"


def _values(metric: Metric, runs: Sequence[Record]) -> list[float]:
    """Of the runs that have one."""
    return [value for run in runs if (value := metric.read(run)) is not None]


def _versions(methods: dict[str, Record]) -> str:
    found = {name: text for method in methods.values() for name, text in method["runs"][0].get("versions", {}).items()}
    return ", ".join(f"{name} {text}" for name, text in sorted(found.items()))
