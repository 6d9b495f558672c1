"""The measured parts of docs/mixtures.md: between marks, written from the records; the words around them are not."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

from tessella.paper.pages.markdown import table
from tessella.paper.pages.records import machine
from tessella.paper.pages.regimes import regimes_tables
from tessella.paper.toys import FIGURE_6

COLUMNS = {"coupling": "coupling flow", "dimensionwise": "cut by dimension", "mixture": "disjoint mixture"}


def mixtures_page(folder: Path, docs: Path) -> str:
    """docs/mixtures.md with what the records in `folder` give."""
    parts: dict[str, Callable[[Path, Path], str]] = {"mixture-2d": toys_table, "when-cells-help": regimes_tables}
    page = (docs / "mixtures.md").read_text("utf-8")
    for name, part in parts.items():
        page = filled(page, name, part(folder, docs))
    return page


def filled(page: str, name: str, text: str) -> str:
    """The page with this text between its marks of that name.

    >>> print(filled("a\\n<!-- begin x -->\\nold\\n<!-- end x -->\\nb", "x", "new\\n"))
    a
    <!-- begin x -->
    new
    <!-- end x -->
    b
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    changed, found = re.subn(f"(?<={re.escape(begin)}).*?(?={re.escape(end)})", lambda _: text, page, flags=re.DOTALL)
    if found != 1:
        raise ValueError(
            f"docs/mixtures.md: {found} parts marked {name!r}; expected one, between {begin!r} and {end!r}"
        )
    return changed


def toys_table(folder: Path, docs: Path) -> str:
    """Size and budget of the models of Figure 6, and a line for each toy; the best of a line is bold."""
    link = Path(os.path.relpath(folder, docs)).as_posix()
    paths = {data: folder / f"mixture-2d-{data}.json" for data in FIGURE_6}
    records = {data: json.loads(path.read_text()) for data, path in paths.items() if path.exists()}
    if not records:
        return "No records yet.\n"
    lines = []
    for data, record in records.items():
        best = min(record[model]["nll"] for model in COLUMNS)
        marks = ["**" if record[model]["nll"] == best else "" for model in COLUMNS]
        values = [f"{record[model]['nll']:.3f} ± {record[model]['stderr']:.3f}" for model in COLUMNS]
        bold = [f"{mark}{value}{mark}" for mark, value in zip(marks, values, strict=True)]
        lines.append([data.replace("_", " "), *bold, f"{record['steps']:,}", f"[record]({link}/{paths[data].name})"])
    first = next(iter(records.values()))
    size = ", ".join(f"{label} {first[model]['parameters']:,}" for model, label in COLUMNS.items())
    machines = " / ".join(sorted({machine(record["hardware"]) for record in records.values()}))
    return f"Parameters: {size}. {machines}.\n\n{table(['data', *COLUMNS.values(), 'steps', ''], lines)}"
