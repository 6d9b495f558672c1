"""When cells help: what they gain over the same blocks without them, for each dimension and number of modes."""

from pathlib import Path
from typing import Any

from tessella.paper.figures.style import BLUE, GREY, INK, ORANGE, PAPER, new_figure, save
from tessella.paper.pages.regimes import Answers
from tessella.paper.regimes import APART, DIMS, MANY, MODES, SEPARATIONS

LINEAR, MOST = 0.1, 30.0  # nats: the scale of colours is linear up to the first, and ends at the second
NOTHING = "#f1f3f5"  # where there is no record


def draw_regimes(path: Path, results: Path) -> Path:
    """KL without cells - KL with them, nats: a panel for each separation; longer training; bent modes.

    Panels without any answer are left out, but for the first.
    """
    from matplotlib.colors import LinearSegmentedColormap, SymLogNorm

    gain = Answers(results).gain
    separations = sorted(SEPARATIONS, key=lambda separation: separation != APART)
    panels: dict[str, dict[str, Any]] = {f"{s:g} apart": {"separation": s, "steps": 1_000} for s in separations}
    panels[f"{APART:g} apart, 10,000 steps"] = {"separation": APART, "steps": 10_000}
    panels[f"{APART:g} apart, bent"] = {"separation": APART, "steps": 1_000, "bent": True}
    found = {name: [[gain(dim, modes, **asked) for modes in MODES] for dim in DIMS] for name, asked in panels.items()}
    empty = [name for name, gains in found.items() if all(value is None for line in gains for value in line)]
    for name in empty[len(empty) == len(found) :]:
        del found[name]
    colours = LinearSegmentedColormap.from_list("gain", [ORANGE, PAPER, BLUE])
    columns = min(3, len(found))
    figure, places = new_figure(columns, -(-len(found) // columns), panel=(3.6, 3.4), gap=0.04)
    for axes in places[len(found) :]:
        axes.remove()
    for axes, (title, gains) in zip(places, found.items(), strict=False):
        values = [[float("nan") if value is None else value for value in line] for line in gains]
        shown = axes.imshow(values, cmap=colours, norm=SymLogNorm(LINEAR, vmin=-MOST, vmax=MOST), aspect="auto")
        axes.set(xticks=range(len(MODES)), xticklabels=MODES, yticks=range(len(DIMS)), yticklabels=DIMS)
        axes.set(xlabel="modes", ylabel="D", facecolor=NOTHING)
        axes.set_title(title, fontsize=11, color=INK)
        for row, line in enumerate(gains):
            for column, value in enumerate(line):
                said = "" if value is None else f"{value:+.2f}"
                light = value is not None and abs(value) > 3
                axes.text(column, row, said, ha="center", va="center", fontsize=10, color=PAPER if light else INK)
        for spine in axes.spines.values():
            spine.set_color(GREY)
    bar = figure.colorbar(shown, ax=places[: len(found)], shrink=0.6, pad=0.02)
    bar.set_label(f"KL without cells $-$ KL with {MANY} cells, nats")
    return save(figure, path)
