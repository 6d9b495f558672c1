"""docs/results.md and docs/ablations.md: written from the records, never by hand."""

import os
from collections.abc import Sequence
from math import inf
from pathlib import Path

from tessella.data import TABLES
from tessella.paper.pages.itemsets import itemsets_section
from tessella.paper.pages.markdown import DASH, duration, table
from tessella.paper.pages.records import Cell, Record, cells, machine, read_records
from tessella.paper.pages.texts import texts_section
from tessella.paper.pages.vectors import vectors_section
from tessella.paper.published import ENTROPY_FLOORS, PUBLISHED, Published, below_entropy_floor
from tessella.paper.tables.methods import passes

TITLES = {
    ("connect4", False): "Connect4",
    ("forests", False): "Forests",
    ("mushroom", False): "Mushroom",
    ("nursery", False): "Nursery",
    ("pokerhands", False): "PokerHands",
    ("pokerhands", True): "PokerHands, simulated",
    ("uscensus90", False): "USCensus90",
}
LABELS = {
    "voronoi": "Voronoi",
    "simplex": "simplex",
    "binary-argmax": "binary argmax",
    "discrete-flow": "discrete flow",
    "independent": "independent",
    "chow-liu": "Chow-Liu tree",
    "mixture": "mixture of categoricals",
    "blocks": "block-autoregressive mixture of categoricals",
    "transformer": "causal transformer",
    "autoregressive": "transformer in any order",
    "backoff": "counts of rows, the rest by a transformer",
}
PRESETS = {
    "best": "",
    "joined": ", columns joined",
    "blind": ", couplings that know no cells",
    "affine": ", affine couplings",
    "small": ", small, on a CPU",
    "paper": ", published architecture",
    "mixture-start": ", from a fitted mixture",
}
ROWS = [(method, preset) for method in LABELS for preset in PRESETS]
NOTHING_LEARNED = "mixture of categoricals, seen through cells"
THROUGH_CELLS = ("best", "blind", "affine", "small", "paper")
"""Presets of Voronoi in which gradients start from what is no fitted model, and columns are as published."""

INTRODUCTION = """\
# Results: Table 1 of the paper

Written by `tessella results` from the records in `results/tables`; a test compares the two. `python -m
benchmarks.tables` lists the launch lines; each record holds its own command, commit, hardware, model and training.

Negative log-likelihood of held-out rows in nats per row, lower is better. *Published* values are the paper's, mean ±
standard deviation over three seeds. Ours are mean ± standard deviation over seeds where there are several, else one
seed ± standard error over the test rows. *Exact* values are likelihoods; IW-S values are bounds from S importance
samples: the truth is lower. Test sets of more than 10,000 rows are evaluated on their first 10,000. Training time
includes the validations that choose the weights, not the final evaluation. Runs that shared a GPU say with how many:
the same minutes are then fewer steps, so look at those before calling a method worse. A dash: not run. Bold: the lowest
of ours.

*Before training* and *learned*: the value on validation rows before the first update, and what training took off it. A
result is named after what produced it. *Learned through the cells* is the best, by validation rows, of the Voronoi runs
in which gradients started from what is no fitted model, the frequencies of single columns at most, and columns are as
published. Their couplings move groups of columns, one group after another, each given the cells of those that follow
(mathematics.md, 9): a chain over four or eight groups, not over columns; *couplings that know no cells* are given
points alone. *Columns joined*: columns that say one thing together are one variable, the four and forty indicators of
area and soil in Forests, the files of a Connect4 board, suit and rank of a card. The rows and their probabilities are
the same, but which columns belong together was told, and published models were not told it. Where a flow began as a
mixture of categoricals, found by expectation maximisation, and no update improved it, the row says *mixture of
categoricals, seen through cells*: what is measured is the mixture. The *block-autoregressive mixture* has no cells:
groups of columns, each a mixture given the groups before it, scored exactly. (Its records are of an earlier network,
with two tokens for each column where today's has one for each group; a record's *note* says such things.) The
*transformer in any order* corrects a mixture of 200 products on Mushroom, learned with it by gradients from components
at random. *Counts of rows*: rows that came in training keep most of their share, what is discounted goes to a
transformer (mathematics.md, 8).

*Slack* is how far a bound may be from the truth, on rows that the model drew itself: the width between a lower and an
upper bound in nats, and the share of draws that lie where the noise hardly ever goes. Exact values have none. Where the
slack is unknown, or as large as the difference between two rows, **their order says nothing about the models**: in
particular, dequantizers cannot be ranked by it.

*Passes* are the networks that must be asked one after another to draw a row: one for each column of a causal
transformer, one for each group of the block-autoregressive mixture, one for each block of a coupling flow.

An *entropy floor* is a value that no valid model passes. A published value below it by more than three of its standard
deviations is marked **not valid**: whatever was measured, it was not the mean of -log P under a distribution that sums
to one.
"""
ABLATIONS = """\
# Ablations

Written by `tessella results` from the records in `results/ablations`. Within a group and a table, the lowest value on
*validation* rows, which training saw, with few importance samples, comes first. *Test*: nats per row, lower is better,
± standard error over the rows; exact, or a bound. *Slack*: how far apart lower and upper bounds are on rows that the
model drew, in nats, and the share of them that the noise does not explain; where it is large or unknown, small
differences say nothing. *Sum*: of the estimated probabilities of all possible rows, where they can be enumerated; 1 if
no mass is missed.
"""


CAPTIONS = {
    "results-time.png": "Value on validation rows while training: exact for the transformer and the discrete flow, a "
    "bound from a few importance samples for the others. Curves that stay far above the rest are cut off.",
    "results-importance.png": "The same weights, averaged over groups of S, on the first 1,000 test rows at most.",
    "results-speed.png": "Measured in one run on one machine. Weights are untrained, on which speed does not depend. "
    "No network keeps keys and values from one pass to the next; with them the transformer would gain most, where many "
    "rows are drawn at a time.",
}


def label(method: str, preset: str, learned: bool = True) -> str:
    """What a row is called."""
    return LABELS[method] + PRESETS[preset] if learned or method != "voronoi" else NOTHING_LEARNED


def results_page(folder: Path, docs: Path) -> str:
    """The page that the records in `folder`/tables give; `docs` is where it will stand."""
    tables = folder / "tables"
    found = cells(read_records(tables))
    link = Path(os.path.relpath(tables, docs)).as_posix()
    parts = [INTRODUCTION, _summary(found)]
    parts += [_section(key, title, found, link) for key, title in TITLES.items()]
    parts += [itemsets_section(folder, docs), vectors_section(folder, docs), texts_section(folder, docs)]
    parts += [
        f"## {title}\n\n![{title}](pictures/{name})\n\n{CAPTIONS[name]}\n" for name, title in pictures(folder).items()
    ]
    return "\n".join(parts)


HEADLINE = [("connect4", False), ("forests", False), ("mushroom", False), ("nursery", False), ("pokerhands", True)]


def headline(folder: Path) -> str:
    """The few lines of the summary that README shows."""
    found = cells(read_records(folder / "tables"))
    lines = [
        ["entropy floor", *(_floor(TABLES[data].entropy_floor) for data, _ in HEADLINE)],
        ["Voronoi, published", *(_published(data, "voronoi", short=True) for data, _ in HEADLINE)],
        ["Voronoi, learned through the cells", *(_bound(_through_cells(key, found)) for key in HEADLINE)],
        [label("voronoi", "joined"), *(_bound(found.get((*key, "voronoi", "joined"))) for key in HEADLINE)],
    ]
    exact = [(method, "best") for method in ("mixture", "blocks", "transformer", "autoregressive")]
    for method, preset in [*exact, ("autoregressive", "joined"), ("backoff", "joined")]:
        ours = [found.get((*key, method, preset)) for key in HEADLINE]
        if any(ours):
            lines.append([label(method, preset), *(_value(cell, found, short=True) for cell in ours)])
    return table(["", *(TITLES[key] for key in HEADLINE)], lines)


def _bound(cell: Cell | None) -> str:
    return DASH if cell is None else f"≤ {cell.mean('iw_nll'):.3f}"


def pictures(folder: Path) -> dict[str, str]:
    """File names of the pictures that the records have something to show in, and their titles."""
    records = read_records(folder / "tables")
    shown = {
        "results-time.png": ("Training time", any(len(record["curve"]) > 1 for record in records)),
        "results-importance.png": ("Importance samples", any(record["iw_curve"] for record in records)),
        "results-speed.png": ("Sampling speed", (folder / "sampling-speed.json").exists()),
    }
    return {name: title for name, (title, something) in shown.items() if something}


def ablations_page(folder: Path, docs: Path) -> str:
    """The page that the records in `folder`/ablations give."""
    records = read_records(folder / "ablations")
    link = Path(os.path.relpath(folder / "ablations", docs)).as_posix()
    parts = [ABLATIONS]
    for group in sorted({record["ablation"] for record in records}):
        members = [record for record in records if record["ablation"] == group]
        members.sort(
            key=lambda record: (record["data"], record["simulated"], record["method"], record["validation_nll"])
        )
        lines = [_ablation_line(record, link) for record in members]
        header = ["variant", "table", "method", "validation", "test", "slack", "sum", "steps", "training"]
        header += ["hardware", "seed"]
        parts.append(f"## {group}\n\n{table(header, lines)}")
    return "\n".join(parts if records else [*parts, "No records yet.\n"])


def _through_cells(table: tuple[str, bool], found: dict[tuple[str, bool, str, str], Cell]) -> Cell | None:
    """The Voronoi runs of one preset on a table that validation rows like best among those that learned everything."""
    here = [found.get((*table, "voronoi", preset)) for preset in THROUGH_CELLS]
    learned = [cell for cell in here if cell and cell.learned]
    return min(learned, key=lambda cell: cell.mean("validation_nll"), default=None)


def _summary(found: dict[tuple[str, bool, str, str], Cell]) -> str:
    lines = [["entropy floor", *(_floor(TABLES[data].entropy_floor) for data, _ in TITLES)]]
    for method, preset in ROWS:
        ours = [found.get((*key, method, preset)) for key in TITLES]
        if method in PUBLISHED["nursery"] and preset == "best":
            published = [_published(data, method, short=True) for data, _ in TITLES]
            lines.append([f"{LABELS[method]}, published", *published])
        if (method, preset) == ("voronoi", "best"):
            learned = [_value(_through_cells(key, found), found, short=True) for key in TITLES]
            lines.append(["Voronoi, learned through the cells, here", *learned])
        if any(ours):
            name = label(method, preset, any(cell.learned for cell in ours if cell))
            lines.append([f"{name}, here", *(_value(cell, found, short=True) for cell in ours)])
    return table(["", *TITLES.values()], lines)


def _section(key: tuple[str, bool], title: str, found: dict[tuple[str, bool, str, str], Cell], link: str) -> str:
    data, simulated = key
    here = {row: found.get((*key, *row)) for row in ROWS}
    lines = []
    for (method, preset), cell in here.items():
        published = _published(data, method) if preset == "best" else DASH
        if preset == "best" or cell:
            value = _value(cell, found)
            learned = cell is None or cell.learned
            lines.append([label(method, preset, learned), published, value, *_details(cell, link)])
    header = ["method", "published", "here", "kind", "slack", "before training", "learned"]
    header += ["passes", "parameters", "training", "hardware", "records"]
    return (
        f"## {title}\n\n{_about(data, simulated, [cell for cell in here.values() if cell])}\n\n{table(header, lines)}"
    )


def _about(data: str, simulated: bool, run: Sequence[Cell]) -> str:
    floor = TABLES[data].entropy_floor
    said = [
        f"Entropy floor {floor:.4f} nats. {ENTROPY_FLOORS[data]}" if floor is not None else "No entropy floor is known."
    ]
    wrong = [LABELS[method] for method, value in PUBLISHED[data].items() if below_entropy_floor(data, value)]
    if wrong and not simulated:
        said.append(f"The published value for {', '.join(wrong)} lies below it.")
    partial = sorted({cell.first["partial"] for cell in run if cell.first["partial"]})
    said += [f"Rows: {note}; published values are for the file's own, complete rows." for note in partial]
    tested = sorted({(cell.first["test_rows"], cell.first["test_rows_available"]) for cell in run})
    said += [f"Test rows: {used:,}" + (f" of {there:,}." if used < there else ".") for used, there in tested]
    return " ".join(said if run else [*said, "Not measured."])


def _details(cell: Cell | None, link: str) -> list[str]:
    if cell is None:
        return [DASH] * 9
    bound = f"IW-{cell.first['iw_samples']} (ELBO {cell.mean('elbo_nll'):.2f})"
    machines = sorted({machine(record["hardware"]) for record in cell.records})
    files = ", ".join(f"[seed {record['seed']}]({link}/{record['file']})" for record in cell.records)
    return [
        "exact" if cell.first["exact"] else bound,
        _slack(cell),
        *_learning(cell),
        str(_passes(cell)),
        f"{cell.first['parameters']:,}",
        _training(cell),
        " / ".join(machines),
        files,
    ]


def _slack(cell: Cell) -> str:
    """Width of the sandwich and share of draws that the noise does not explain; of several seeds the widest."""
    return _widest(cell.records)


def _widest(records: Sequence[Record]) -> str:
    if records[0]["exact"]:
        return DASH
    found = [record["sandwich"]["value"] for record in records if "sandwich" in record]
    if not found:
        return "unknown"
    widest = max(found, key=lambda values: values.get("width", inf))
    width = f"{widest['width']:.2f}" if "width" in widest else "unbounded"
    return f"{width}, {100 * widest['unexplained']:.0f}%"


def _learning(cell: Cell) -> list[str]:
    """The validation value before training, and what training took off it."""
    if cell.first["initial_nll"] is None:
        return [DASH, DASH]
    before = cell.mean("initial_nll")
    return [f"{before:.3f}", f"{before - cell.mean('validation_nll'):.3f}"]


def _passes(cell: Cell) -> int:
    entry = TABLES[cell.first["data"]]
    variables = entry.joined_variables if cell.first["preset"] == "joined" else entry.extent.variables
    return passes(cell.first["method"], cell.first["model"], variables)


def _training(cell: Cell) -> str:
    """Time and steps; of methods that count, only a mixture has steps, and it may have run out of them."""
    took, steps = duration(cell.mean("seconds")), f"{round(cell.mean('steps')):,}"
    if cell.first["training"]:
        return f"{took}, {steps} steps"
    if cell.first["method"] != "mixture":
        return took
    limited = any(record["stopped"] != "patience" for record in cell.records)
    return f"{took}, {steps} iterations" + (", stopped by the limit" if limited else "")


def _value(cell: Cell | None, found: dict[tuple[str, bool, str, str], Cell], short: bool = False) -> str:
    if cell is None:
        return DASH
    data, simulated = cell.first["data"], cell.first["simulated"]
    baselines = [other.mean("iw_nll") for key, other in found.items() if key[:2] == (data, simulated)]
    text = f"{cell.mean('iw_nll'):.3f}" if short else str(cell)
    return f"**{text}**" if cell.mean("iw_nll") == min(baselines) else text


def _published(data: str, method: str, short: bool = False) -> str:
    value: Published | None = PUBLISHED[data].get(method)
    if value is None:
        return DASH
    text = f"{value.value:.2f}" if short else f"{value.value:.2f} ± {value.spread:.2f}"
    return f"{text} (**not valid**)" if below_entropy_floor(data, value) else text


def _ablation_line(record: Record, link: str) -> list[str]:
    value = f"[{record['iw_nll']:.3f} ± {record['stderr']:.3f}]({link}/{record['file']})"
    title = TITLES[record["data"], record["simulated"]]
    mass = record.get("sum_to_one")
    total = DASH if mass is None else f"{mass['value']['total']:.3f}"
    took = [f"{record['steps']:,}", duration(record["seconds"]), machine(record["hardware"]), str(record["seed"])]
    named = [record["variant"], title, LABELS[record["method"]], f"{record['validation_nll']:.3f}"]
    return [*named, value, _widest([record]), total, *took]


def _floor(entropy_floor: float | None) -> str:
    return DASH if entropy_floor is None else f"{entropy_floor:.3f}"
