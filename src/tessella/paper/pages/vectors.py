"""The section on continuous tables of docs/results.md: Table 4 of the paper, and what was measured here."""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev

from tessella.data.vectors.registry import VECTORS
from tessella.paper.pages.markdown import DASH, duration, table
from tessella.paper.pages.records import Record, machine
from tessella.paper.published import BUDGET, PUBLISHED_VECTORS

LABELS = {
    "mixture": "disjoint mixture",
    "one-cell": "disjoint mixture of one cell",
    "spline": "coupling flow, splines",
    "coupling": "coupling flow, affine",
    "autoregressive": "autoregressive spline flow (zuko)",
}
PRESETS = {"best": "", "paper": ", published sizes"}
BEST = ("best", "")  # preset, variant
Groups = dict[tuple[str, str, str, str], list[Record]]  # of data, method, preset, variant

NEEDED = {"data", "partial", "rebuilt", "method", "preset", "seed", "steps", "seconds", "nll", "stderr", "test_rows"}
NEEDED |= {"validation_nll", "parameters", "command", "commit", "hardware", "curve", "training"}

INTRODUCTION = f"""\
## Continuous tables

Table 4 of the paper: NLL of held-out rows in nats, exact for every method here, lower is better; a density's NLL may be
negative. *Published* values are the paper's, with the ± that it gives; those of Real NVP, MAF and FFJORD are quoted
there from other papers. Ours come from the records in `results/continuous`, ± as above; all test rows at hand count.
The coupling flows have as many blocks as the mixture and about as many parameters; one cell, whose component has heavy
tails, tells what these do from what cells do; the autoregressive flow is what one would use without cells.
[mixtures.md](mixtures.md) has the method. *Averaged over symmetries*: of the same weights, the mean of the
density over the mirror images and turns of a patch, which is a density, too. Where rows are only a part of a table, or
were drawn anew, a line above it says so: such values do not quite compare with the published ones. A dash: not run.

Published budget of the two methods of the paper: {BUDGET}. Ours stands in each line.
"""


def vectors_section(folder: Path, docs: Path) -> str:
    """What the records in `folder`/continuous give; `docs` is where the page will stand."""
    link = Path(os.path.relpath(folder / "continuous", docs)).as_posix()
    groups: Groups = defaultdict(list)
    for path in sorted((folder / "continuous").glob("*.json")):
        record = _checked(path)
        groups[record["data"], record["method"], record["preset"], record.get("variant", "")].append(record)
    return "\n".join([INTRODUCTION, *(_of_table(data, groups, link) for data in VECTORS)])


def _checked(path: Path) -> Record:
    record: Record = json.loads(path.read_text())
    if missing := sorted(NEEDED - set(record)):
        raise ValueError(f"{path}: no {', '.join(missing)}; expected a record of `tessella reproduce continuous`")
    return record | {"file": path.name}


def _of_table(data: str, groups: Groups, link: str) -> str:
    here = [record for key, group in groups.items() if key[0] == data for record in group]
    lines = [
        [method, _published(data, method), *[DASH] * 6] for method in PUBLISHED_VECTORS[data] if method not in LABELS
    ]
    lines += [line for method in LABELS for line in _of_method(data, method, groups, link)]
    header = ["method", "published", "here", "parameters", "batch", "training", "hardware", "records"]
    notes = sorted({note for record in here for note in (record["partial"], record["rebuilt"]) if note})
    said = [" ".join(f"Rows: {note}." for note in notes)] if notes else []
    return "\n\n".join([f"### {data.upper()}", *said, table(header, lines)])


def _of_method(data: str, method: str, groups: Groups, link: str) -> Iterator[list[str]]:
    """The preset `best`, measured or not, then what else there is of the method."""
    here = {key[2:]: group for key, group in groups.items() if key[:2] == (data, method)}
    for preset, variant in sorted({BEST, *here}):
        group = here.get((preset, variant), [])
        name = LABELS[method] + PRESETS[preset] + (f" ({variant})" if variant else "")
        published = _published(data, method) if (preset, variant) == BEST else DASH
        yield [name, published, *_details(group, link)]
        if averaged := [record | record["symmetrized"] for record in group if record.get("symmetrized")]:
            yield [f"{name}, averaged over symmetries", DASH, *_details(averaged, link)]


def _published(data: str, method: str) -> str:
    found = PUBLISHED_VECTORS[data].get(method)
    return DASH if found is None else f"{found.value:.2f} ± {found.spread:.2f}"


def _details(records: list[Record], link: str) -> list[str]:
    """Value, parameters, batch, training, hardware, files: of one method, one record a seed."""
    if not records:
        return [DASH] * 6
    values = [record["nll"] for record in records]
    error = stdev(values) if len(values) > 1 else records[0]["stderr"]
    seeds = f" ({len(values)} seeds)" if len(values) > 1 else ""
    steps = round(mean(record["steps"] for record in records))
    augmented = "" if records[0].get("symmetries", "none") == "none" else ", augmented"
    return [
        f"{mean(values):.3f} ± {error:.3f}{seeds}",
        f"{records[0]['parameters']:,}",
        f"{records[0]['training']['batch_size']:,}",
        f"{duration(mean(record['seconds'] for record in records))}, {steps:,} steps{augmented}",
        " / ".join(sorted({machine(record["hardware"]) for record in records})),
        ", ".join(f"[seed {record['seed']}]({link}/{record['file']})" for record in records),
    ]
