"""The section on texts of docs/results.md: Table 3 of the paper, and what was measured here."""

import json
import os
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

from tessella.data.texts.registry import TEXTS
from tessella.paper.pages.markdown import DASH, duration, table
from tessella.paper.pages.records import Record, machine
from tessella.paper.published import PUBLISHED_TEXTS, TEXT_BUDGET

Row = tuple[str, int | None, str]
ROWS: dict[Row, str] = {
    **{("voronoi", dim, "transformer"): f"Voronoi, D = {dim}" for dim in (2, 4, 6, 8)},
    ("binary-argmax", None, "transformer"): "binary argmax",
    ("ordinal", None, "transformer"): "ordinal",
    ("exact", 8, "transformer"): "disjoint mixture over the cells, D = 8",
    ("none", None, "transformer"): "softmax, no cells",
}
PICTURE = "text-characters.png"
NEEDED = {
    "data",
    "partial",
    "method",
    "dim",
    "network",
    "preset",
    "length",
    "seed",
    "steps",
    "seconds",
    "bpc",
    "stderr",
}
NEEDED |= {"elbo_bpc", "iw_samples", "exact", "validation_bpc", "parameters", "characters_seen", "test_windows"}
NEEDED |= {"test_windows_available", "unigram_bpc", "bigram_bpc", "generation", "characters", "command", "commit"}
NEEDED |= {"hardware", "training"}

INTRODUCTION = f"""\
## Texts

Table 3 of the paper: bits per character of held-out text, lower is better. [text.md](text.md) has the method.
*Published* values are the paper's. Ours come from the records in `results/text`: mean ± standard deviation over seeds
where there are several, else one seed ± standard error over the test windows. *Exact* values are likelihoods. IW-S
values are bounds, from S importance samples and one weight for a whole window: the truth is lower. Windows have the
published length, 256 characters of text8 and 320 of enwik8, and do not overlap: nothing before a window is known in it,
so its first characters are dear. All methods have the same causal transformer, and the flows the same density of
points: they differ in the geometry. The *disjoint mixture* has the bound that is tight; its likelihood is that of the
*softmax*, in which there are no cells, and both stand here to show it. *Slack*: how far apart lower and upper bounds
are on windows that the model drew, in bits per character. *Drawing*: characters a second, many side by side. A dash:
not run.

Published budget: {TEXT_BUDGET}. Ours stands in each line.
"""


def texts_section(folder: Path, docs: Path) -> str:
    """What the records in `folder`/text give; `docs` is where the page will stand."""
    link = Path(os.path.relpath(folder / "text", docs)).as_posix()
    groups: defaultdict[tuple[str, str, int | None, str, str], list[Record]] = defaultdict(list)
    for record in read_text_records(folder):
        variant = record.get("variant", "") or ("" if record["preset"] == "best" else record["preset"])
        groups[record["data"], record["method"], record["dim"], record["network"], variant].append(record)
    parts = [INTRODUCTION, *(_of_text(data, groups, link) for data in TEXTS)]
    if mapped(folder):
        parts.append(f"![Characters where the learned cells lie](pictures/{PICTURE})\n\n{CAPTION}\n")
    return "\n".join(parts)


CAPTION = (
    "Where the cells of the characters lie after training (the two principal coordinates), each with a line to its "
    "nearest: vowels orange, consonants blue, digits green. They began where counts of pairs put them."
)


def read_text_records(folder: Path) -> list[Record]:
    """All of them, by file name."""
    return [_checked(path) for path in sorted((folder / "text").glob("*.json"))]


def mapped(folder: Path) -> list[Record]:
    """Records whose cells were learned, one for each text and dimension."""
    found = {
        (record["data"], record["dim"]): record
        for record in read_text_records(folder)
        if record["method"] == "voronoi" and record["preset"] == "best" and record["network"] == "transformer"
    }
    return [found[key] for key in sorted(found)]


def _checked(path: Path) -> Record:
    record: Record = json.loads(path.read_text())
    if missing := sorted(NEEDED - set(record)):
        raise ValueError(f"{path}: no {', '.join(missing)}; expected a record of `tessella reproduce text`")
    return record | {"file": path.name}


def _of_text(data: str, groups: dict[tuple[str, str, int | None, str, str], list[Record]], link: str) -> str:
    here = {key[1:]: group for key, group in groups.items() if key[0] == data}
    lines, measured = [], {}
    for row, label in ROWS.items():
        group = here.pop((*row, ""), [])
        lines.append([label, _published(data, row), *_details(group, link)])
        if group:
            measured[row] = mean(record["bpc"] for record in group)
    for (method, dim, network, variant), group in sorted(here.items(), key=lambda item: str(item[0])):
        known = ROWS.get((method, dim, "transformer"), f"{method}, D = {dim}")
        said = ", ".join(filter(None, [known, "LSTM" if network == "lstm" else "", variant]))
        lines.append([said, DASH, *_details(group, link)])
    header = ["method", "published", "here", "kind", "slack", "parameters", "training", "characters seen", "drawing"]
    header += ["hardware", "records"]
    records = [record for key, group in groups.items() if key[0] == data for record in group]
    return "\n\n".join(filter(None, [f"### {data}", _said(records), _order(data, measured), table(header, lines)]))


def _said(records: list[Record]) -> str:
    """What is missing, what counting gives, how many windows were scored."""
    said = [
        f"Characters: {note.removeprefix('partial: ')}."
        for note in sorted({record["partial"] for record in records if record["partial"]})
    ]
    tested = sorted(
        {(record["test_windows"], record["test_windows_available"], record["length"]) for record in records}
    )
    said += [
        f"Test windows: {used:,}{f' of {there:,}' if used < there else ''}, of {length} characters."
        for used, there, length in tested
    ]
    if records:
        one = records[0]
        said.append(f"By counting characters: {one['unigram_bpc']:.3f}; pairs of them: {one['bigram_bpc']:.3f}.")
    return " ".join(said)


def _order(data: str, measured: dict[Row, float]) -> str:
    """Published methods that were run, the lowest first, here and there; "" where fewer than two were."""
    known = {row: found.value for row in measured if (found := PUBLISHED_TEXTS[data].get(row[:2]))}
    if len(known) < 2:
        return ""
    here, there = (
        ", ".join(f"{ROWS[row]} ({values[row]:.3f})" for row in sorted(known, key=lambda row: values[row]))
        for values in (measured, known)
    )
    return f"Here, the lowest first: {here}. Published: {there}. Differences smaller than error and slack say nothing."


def _published(data: str, row: Row) -> str:
    found = PUBLISHED_TEXTS[data].get(row[:2])
    if found is None:
        return DASH
    return f"{found.value:.2f} ± {found.spread:.2f}" if found.spread is not None else f"{found.value:.2f}"


def _details(records: list[Record], link: str) -> list[str]:
    """Value, kind, slack, parameters, training, characters, drawing, hardware, files: one record a seed."""
    if not records:
        return [DASH] * 9
    values, first = [record["bpc"] for record in records], records[0]
    error = stdev(values) if len(values) > 1 else first["stderr"]
    seeds = f" ({len(values)} seeds)" if len(values) > 1 else ""
    bound = f"IW-{first['iw_samples']} (ELBO {mean(record['elbo_bpc'] for record in records):.3f})"
    steps = round(mean(record["steps"] for record in records))
    return [
        f"{mean(values):.3f} ± {error:.3f}{seeds}",
        "exact" if first["exact"] else bound,
        _slack(records),
        f"{first['parameters']:,}",
        f"{duration(mean(record['seconds'] for record in records))}, {steps:,} steps",
        f"{mean(record['characters_seen'] for record in records) / 1e6:,.0f} M",
        f"{max(record['generation']['per_second'] for record in records):,}",
        " / ".join(sorted({machine(record["hardware"]) for record in records})),
        ", ".join(f"[seed {record['seed']}]({link}/{record['file']})" for record in records),
    ]


def _slack(records: list[Record]) -> str:
    if records[0]["exact"]:
        return DASH
    widths = [record["sandwich"]["value"].get("width") for record in records if "sandwich" in record]
    if not widths or None in widths:
        return "unknown"
    return f"{max(widths) / (records[0]['length'] * 0.6931471805599453):.3f}"
