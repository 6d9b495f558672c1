"""When cells help: the tables of docs/mixtures.md, from the records in results/regimes."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tessella.paper.modes import Modes
from tessella.paper.pages.markdown import DASH, table
from tessella.paper.pages.records import Record, machine
from tessella.paper.regimes import APART, CELLS, DIMS, MANY, MODES, SEPARATIONS, SOME, Question, record_path

BUDGETS = (1_000, 10_000, 100_000)
PAIR = f"without cells / with {MANY} cells"
CELL_COLUMNS = ("no cells", *(f"K = {k}" for k in CELLS))

PICTURE = (
    "![Gain of cells over no cells in nats, for each dimension, number of modes, separation and budget]"
    "(pictures/mixture-regimes.png)"
)


class Answers:
    """The records of a folder, by their question; of seed 0."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, dim: int, modes: int, separation: float, cells: int, steps: int, bent: bool) -> Record | None:
        path = record_path(self.folder, Question(Modes(dim, modes, separation, bent), cells, steps))
        return json.loads(path.read_text()) if path.exists() else None

    def gain(self, dim: int, modes: int, separation: float, steps: int, bent: bool = False) -> float | None:
        """KL without cells - KL with `MANY` of them, nats."""
        without, cells = (self(dim, modes, separation, k, steps, bent) for k in (0, MANY))
        return without["kl"] - cells["kl"] if without and cells else None

    def pair(self, dim: int, modes: int, separation: float, steps: int, bent: bool = False) -> str:
        """KL without cells and with them, the lower one bold."""
        both = [self(dim, modes, separation, k, steps, bent) for k in (0, MANY)]
        return " / ".join(_bold(both))

    def by_cells(self, dim: int, modes: int, steps: int) -> list[str]:
        """KL without cells and with 1, 8, ... of them, the lowest bold."""
        return _bold([self(dim, modes, APART, k, steps, False) for k in (0, *CELLS)])


def _bold(records: Sequence[Record | None]) -> list[str]:
    """KL of each, the lowest bold where they can be compared: all are there, and differ by more than their errors."""
    shown = [DASH if record is None else f"{record['kl']:.2f}" for record in records]
    if not all(records):
        return shown
    order = sorted((record["kl"], record["kl_stderr"], place) for place, record in enumerate(records) if record)
    (lowest, error, best), (second, other, _) = order[:2]
    if second - lowest > 2 * (error**2 + other**2) ** 0.5:
        shown[best] = f"**{shown[best]}**"
    return shown


def regimes_tables(folder: Path, docs: Path) -> str:
    """All tables, and where the records are."""
    paths = sorted((folder / "regimes").glob("*.json"))
    if not paths:
        return "No records yet.\n"
    link = Path(os.path.relpath(folder / "regimes", docs)).as_posix()
    machines = sorted({machine(json.loads(path.read_text())["hardware"]) for path in paths})
    ask = Answers(folder)
    parts = [f"{len(paths)} [records]({link}), on {' / '.join(machines)}.", PICTURE]
    for steps in BUDGETS[:2]:
        by_modes = {f"{m} modes": [ask.pair(d, m, APART, steps) for d in DIMS] for m in (1, *MODES)}
        parts += _answered(f"Modes {APART:g} apart, {steps:,} steps, {PAIR}:", {"D": DIMS}, by_modes)
    by_gap = {f"{s:g} apart": [ask.pair(d, MANY, s, BUDGETS[0]) for d in DIMS] for s in SEPARATIONS}
    parts += _answered(f"{MANY} modes, {BUDGETS[0]:,} steps, {PAIR}:", {"D": DIMS}, by_gap, least=2)
    bent = {f"{m} modes": [ask.pair(d, m, APART, BUDGETS[0], bent=True) for d in DIMS] for m in MODES}
    parts += _answered(f"Bent modes {APART:g} apart, {BUDGETS[0]:,} steps, {PAIR}:", {"D": DIMS}, bent)
    by_steps = {f"{n:,} steps": [ask.pair(d, MANY, APART, n) for d in SOME] for n in BUDGETS}
    parts += _answered(f"{MANY} modes {APART:g} apart, {PAIR}:", {"D": SOME}, by_steps, least=2)
    data = [(d, m) for d in DIMS for m in MODES]
    keys = {"D": [d for d, _ in data], "modes": [m for _, m in data]}
    for steps in BUDGETS[:2]:
        lines = [ask.by_cells(d, m, steps) for d, m in data]
        by_cells = {name: [line[place] for line in lines] for place, name in enumerate(CELL_COLUMNS)}
        title = f"By the number of cells, modes {APART:g} apart, {steps:,} steps:"
        parts += _answered(title, keys, by_cells, least=3)
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _answered(
    title: str, keys: Mapping[str, Sequence[int]], columns: dict[str, list[str]], least: int = 1
) -> list[str]:
    """A title, and a table of what has an answer: lines and columns without one are left out.

    No table where fewer than `least` columns are left, which other tables show.
    """
    shown = {name: values for name, values in columns.items() if any(map(_is_answer, values))}
    if len(shown) < least:
        return []
    lines = [
        [*map(str, line[: len(keys)]), *line[len(keys) :]]
        for line in zip(*keys.values(), *shown.values(), strict=True)
        if any(map(_is_answer, line[len(keys) :]))
    ]
    return [title, table([*keys, *shown], lines)]


def _is_answer(text: str) -> bool:
    return any(sign.isdigit() for sign in text)
