"""The section on sets of items of docs/results.md: Table 2 of the paper, and what was measured here."""

import json
import os
from collections import defaultdict
from math import inf
from pathlib import Path
from statistics import mean, stdev

from tessella.data.itemsets.registry import ITEMSETS
from tessella.paper.pages.markdown import DASH, duration, table
from tessella.paper.pages.records import Record, machine
from tessella.paper.published import PUBLISHED_ITEMSETS

LABELS = {
    "voronoi": "Voronoi, continuous flow",
    "coupling": "Voronoi, couplings",
    "simplex": "simplex",
    "binary-argmax": "binary argmax",
    "independent": "independent items (conditional Bernoulli)",
    "mixture": "mixture of conditional Bernoullis",
    "dpp": "determinantal point process",
    "kdpp": "k-DPP",
    "transformer": "transformer, all orders",
}
PRESETS = {
    "best": "",
    "base": ": the base alone, no flow",
    "gaussian": ", from a Gaussian",
    "paper": ", published architecture",
}
NEEDED = {"data", "partial", "method", "preset", "variant", "seed", "steps", "seconds", "iw_nll", "iw_samples", "exact"}
NEEDED |= {"stderr", "elbo_nll", "initial_nll", "best_step", "validation_nll", "entropy_floor", "test_rows", "base"}
NEEDED |= {"test_rows_available"}
NEEDED |= {"parameters", "command", "commit", "hardware", "sandwich", "hutchinson", "field_evaluations"}

DOUBTS = {
    ("retail", "voronoi"): " (doubtful)",
    ("retail", "binary-argmax"): " (doubtful)",
    ("accidents", "voronoi"): " (**below the floor**)",
    ("accidents", "binary-argmax"): " (**below the floor**)",
}

INTRODUCTION = """\
## Sets of items

Table 2 of the paper: sets of four items, nats per *set*, lower is better: the n! orders of a set count as one, no item
comes twice. Ours come from the records in `results/sets`, ± as above. *Exact* values are likelihoods; IW-S values are
bounds from S importance samples, always with the exact divergence: the truth is lower. *Slack* and *before training* as
above. *Evaluations*: of each continuous flow's field, for one batch of the test. A dash: not run. `python -m
benchmarks.itemsets gpu` lists the launch lines.

**What carries what.** The flows of the preset `best` lead to a base with a bump at every item, inside its Voronoi
cell, which knows kinds of sets and that no item comes twice. It starts as independent items, and all beyond that is
learned by gradients through the cells. Yet most of what is learned is learned by the base: the same mixture without
cells, scored exactly, stands below as *mixture of conditional Bernoullis*, the base in its cells but without a flow as
*the base alone*, and a flow that has to learn everything as *from a Gaussian*. The difference between the first and
the base alone is what the flow adds.

**The published values of the continuous flows cannot be right.** Sets of Accidents are four items drawn from a row,
and even whoever knew the row could not do better than the entropy of that draw: its mean is the entropy floor below,
of the part of the file that was at hand. No model is better, whatever it learned; the published 7.81 and 6.72 are.
Retail has a floor, too, but a low one, since many of its rows have few items; there the published spread over seeds, ±
2.34, is the sign, and that no exact model comes near. What makes such numbers: if the divergence is estimated
(Hutchinson), log w = log p - log q has an error e of mean 0 in each sample, and log 1/S sum_s w_s exp(e_s) grows with
the spread of e, by half its variance where samples are many. The ELBO is not affected on average; the importance-
weighted value is no bound any more. The paper does not say how its divergences were evaluated, so this is an
explanation, not a proof. Where a model of ours has a continuous flow, the same weights are evaluated both ways below.
"""


def itemsets_section(folder: Path, docs: Path) -> str:
    """What the records in `folder`/sets give; `docs` is where the page will stand."""
    link = Path(os.path.relpath(folder / "sets", docs)).as_posix()
    groups: defaultdict[tuple[str, str, str, str], list[Record]] = defaultdict(list)
    for path in sorted((folder / "sets").glob("*.json")):
        record = _checked(path)
        groups[record["data"], record["method"], record["preset"], record["variant"]].append(record)
    return "\n".join([INTRODUCTION, *(_of_data(data, groups, link) for data in ITEMSETS), _traces(groups)])


def _checked(path: Path) -> Record:
    record: Record = json.loads(path.read_text())
    if missing := sorted(NEEDED - set(record)):
        raise ValueError(f"{path}: no {', '.join(missing)}; expected a record of `tessella reproduce itemsets`")
    floor = record["entropy_floor"]
    if floor is not None and record["iw_nll"] < floor - 3 * record["stderr"]:
        raise ValueError(f"{path}: {record['iw_nll']} is below the entropy floor {floor}; expected a valid value")
    return record | {"file": path.name}


def _of_data(data: str, groups: dict[tuple[str, str, str, str], list[Record]], link: str) -> str:
    here = {key[1:]: group for key, group in groups.items() if key[0] == data}
    best = min((mean(record["iw_nll"] for record in group) for group in here.values()), default=inf)
    lines = []
    for method, label in LABELS.items():
        lines.append([label, _published(data, method), *_details(here.get((method, "best", ""), []), best, link)])
        for (other, preset, variant), group in sorted(here.items()):
            if other == method and (preset, variant) != ("best", ""):
                name = label + PRESETS[preset] + (f" ({variant})" if variant else "")
                lines.append([name, DASH, *_details(group, best, link)])
    header = ["method", "published", "here", "kind", "slack", "before training", "evaluations", "parameters"]
    header += ["training", "hardware", "records"]
    records = [record for group in here.values() for record in group]
    said = sorted({_about(record) for record in records}) or ["Not measured."]
    return "\n\n".join([f"### {data.capitalize()}", " ".join(said), table(header, lines)])


def _about(record: Record) -> str:
    floor = f"Entropy floor {record['entropy_floor']:.3f} nats." if record["entropy_floor"] is not None else ""
    part = f"Sets: {record['partial']}; published values are for the whole file." if record["partial"] else ""
    return " ".join(filter(None, [floor, f"Test sets: {record['test_rows_available']:,}.", part]))


def _published(data: str, method: str) -> str:
    found = PUBLISHED_ITEMSETS[data].get(method)
    if found is None:
        return DASH
    return f"{found.value:.2f} ± {found.spread:.2f}" + DOUBTS.get((data, method), "")


def _details(records: list[Record], best: float, link: str) -> list[str]:
    """Everything but the name and the published value: of one method, one record a seed."""
    if not records:
        return [DASH] * 9
    first, values = records[0], [record["iw_nll"] for record in records]
    error = stdev(values) if len(values) > 1 else first["stderr"]
    seeds = f" ({len(values)} seeds)" if len(values) > 1 else ""
    text = f"{mean(values):.3f} ± {error:.3f}{seeds}"
    before = [record["initial_nll"] for record in records if record["initial_nll"] is not None]
    took = duration(mean(record["seconds"] for record in records))
    steps = round(mean(record["steps"] for record in records))
    return [
        f"**{text}**" if mean(values) == best else text,
        _kind(first),
        _slack(first),
        f"{mean(before):.3f}" if before else DASH,
        ", ".join(map(str, first["field_evaluations"])) or DASH,
        f"{first['parameters']:,}",
        f"{took}, {steps:,} steps" if steps else took,
        " / ".join(sorted({machine(record["hardware"]) for record in records})),
        ", ".join(f"[seed {record['seed']}]({link}/{record['file']})" for record in records),
    ]


def _kind(record: Record) -> str:
    kind = "exact" if record["exact"] else f"IW-{record['iw_samples']} (ELBO {record['elbo_nll']:.2f})"
    few = record["test_rows"] < record["test_rows_available"]
    return kind + (f", first {record['test_rows']:,} test sets" if few else "")


def _slack(record: Record) -> str:
    if record["exact"]:
        return DASH
    value = record["sandwich"]["value"]
    width = f"{value['width']:.2f}" if "width" in value else "unbounded"
    return f"{width}, {100 * value['unexplained']:.0f}%"


def _traces(groups: dict[tuple[str, str, str, str], list[Record]]) -> str:
    """Exact and estimated divergences of the same models, beside each other."""
    lines = []
    for (data, method, preset, variant), group in sorted(groups.items()):
        for record in group:
            if found := record["hutchinson"]:
                name = LABELS[method] + PRESETS[preset] + (f" ({variant})" if variant else "")
                spread = "{exact:.2f}, {estimated:.2f}".format(**found["deviation"])
                floor = record["entropy_floor"]
                for count, exact, noisy in found["curve"]:
                    below = " (**below the floor**)" if floor is not None and noisy < floor else ""
                    shown = [f"{exact:.3f}", f"{noisy:.3f}{below}", f"{exact - noisy:.3f}"]
                    lines.append([data, name, str(count), *shown, spread])
    header = ["data", "model", "S", "exact divergence", "Hutchinson's estimate", "too good by", "spread of log w"]
    said = "The same weights, the same sets; on the right is what would have been reported.\n\n" + table(header, lines)
    return "### What an estimated divergence does\n\n" + (said if lines else "Not measured.\n")
