"""Pictures of the results page: bound against time, bound against importance samples, sampling speed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tessella.paper.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, TEAL, new_figure, save
from tessella.paper.pages.records import Record, read_records
from tessella.paper.pages.results import TITLES, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "voronoi": BLUE,
    "simplex": ORANGE,
    "binary-argmax": GREEN,
    "discrete-flow": GREY,
    "blocks": RED,
    "transformer": INK,
    "autoregressive": PURPLE,
    "backoff": TEAL,
}
STYLES: dict[str, Any] = {
    "best": "-",
    "joined": (0, (8, 2)),
    "blind": (0, (5, 1, 1, 1, 1, 1)),
    "affine": "--",
    "small": (0, (1, 3)),
    "paper": ":",
    "mixture-start": "-.",
}
COLUMNS = 3
FLOOR = "entropy floor"


def draw_time(path: Path, folder: Path) -> Path:
    """Validation value against training time, a panel for each table; where it starts is cut off."""
    return _panels(path, folder, "curve", "seconds of training", "validation, nats", _cut_start)


def draw_importance(path: Path, folder: Path) -> Path:
    """Bound against the number of importance samples, from the same weights, a panel for each table."""
    return _panels(path, folder, "iw_curve", "importance samples", "test bound, nats", lambda axes, shown, key: None)


def draw_speed(path: Path, folder: Path) -> Path:
    """Rows per second against the number of rows drawn at a time."""
    record = json.loads((folder / "sampling-speed.json").read_text())
    figure, (axes,) = new_figure(1, panel=(6.0, 3.6))
    for one in record["measured"]:
        name = f"{label(one['method'], one['preset'])} ({one['passes']} passes)"
        look: dict[str, Any] = {"color": COLOURS[one["method"]], "ls": STYLES[one["preset"]], "marker": "."}
        axes.plot(record["rows"], one["rows_per_second"], label=name, **look)
    axes.set(xscale="log", yscale="log", xlabel="rows at a time", ylabel="rows per second")
    axes.legend(frameon=False, fontsize=9)
    machine = record["hardware"].split(";")[0]
    axes.set_title(f"{TITLES[record['data'], False]}, {record['variables']} columns, {machine}", fontsize=10)
    return save(figure, path)


def draw_results(folder: Path, pictures: Path, names: list[str]) -> list[Path]:
    """The named pictures."""
    draw: dict[str, Callable[[Path, Path], Path]] = {
        "results-time.png": draw_time,
        "results-importance.png": draw_importance,
        "results-speed.png": draw_speed,
    }
    return [draw[name](pictures / name, folder) for name in names]


def _panels(
    path: Path,
    folder: Path,
    key: str,
    x: str,
    y: str,
    adjust: Callable[["Axes", list[Record], str], None],
) -> Path:
    shown = [record for record in read_records(folder / "tables") if len(record[key]) > 1]
    tables = [table for table in TITLES if any((record["data"], record["simulated"]) == table for record in shown)]
    columns = min(COLUMNS, len(tables))
    figure, panels = new_figure(columns, -(-len(tables) // columns), panel=(3.7, 3.0), gap=0.05)
    for axes, table in zip(panels, tables, strict=False):
        here = [record for record in shown if (record["data"], record["simulated"]) == table]
        _lines(axes, here, key)
        adjust(axes, here, key)
        axes.set(xscale="log", xlabel=x, ylabel=y)
        axes.set_title(TITLES[table], fontsize=11, color=INK)
    for axes in panels[len(tables) :]:
        axes.set_visible(False)
    _legend(figure, panels)
    return save(figure, path)


def _legend(figure: "Figure", panels: list["Axes"]) -> None:
    """One for all panels, the floor last."""
    found = {name: line for axes in panels for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    names = sorted(found, key=lambda name: (name == FLOOR, list(found).index(name)))
    lines = [found[name] for name in names]
    figure.legend(lines, names, loc="outside lower center", ncols=3, frameon=False, fontsize=9)


def _lines(axes: "Axes", records: list[Record], key: str) -> None:
    for record in records:
        points = [point for point in record[key] if point[0] > 0]
        look: dict[str, Any] = {
            "color": COLOURS[record["method"]],
            "ls": STYLES[record["preset"]],
            "lw": 1.4,
            "marker": ".",
            "ms": 3,
        }
        name = label(record["method"], record["preset"], record["best_step"] != 0)
        axes.plot(*zip(*points, strict=True), label=name, **look)
    floor = records[0]["entropy_floor"]
    if floor is not None:
        axes.axhline(floor, color=GREY, lw=1.0, ls="--", label=FLOOR)


def _cut_start(axes: "Axes", records: list[Record], key: str) -> None:
    """From the floor, or the best, to somewhat above where the middle curve ends; what stays higher is not shown."""
    ends = sorted(min(value for _, value in record[key]) for record in records)
    low = min([ends[0], *(record["entropy_floor"] for record in records if record["entropy_floor"] is not None)])
    height = ends[len(ends) // 2] - low
    axes.set_ylim(low - 0.05 * height - 0.01, low + 1.6 * height + 0.5)
