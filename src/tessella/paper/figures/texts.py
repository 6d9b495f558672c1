"""The map of characters: which are neighbours."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tessella.paper.figures.style import BLUE, GREEN, GREY, INK, ORANGE, bare, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VOWELS, CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
COLUMNS = 4  # of a picture of several maps: dimensions of a text


def draw_characters(path: Path, *maps: dict[str, Any], titles: tuple[str, ...] = ()) -> Path:
    """Characters where they lie, each with a line to its nearest: vowels, consonants, digits and others by colour.

    Args:
        path: of the PNG.
        maps: of `character_map`.
        titles: of each.
    """
    columns = min(COLUMNS, len(maps))
    figure, panels = new_figure(columns, -(-len(maps) // columns), panel=(5.0, 5.2))
    for axes in panels[len(maps) :]:
        axes.set_axis_off()
    for axes, one, title in zip(panels, maps, titles or ("",) * len(maps), strict=False):
        _draw(axes, one, title)
    return save(figure, path)


def _draw(axes: "Axes", one: dict[str, Any], title: str) -> None:
    from matplotlib.collections import LineCollection

    positions = one["positions"]
    lines = [[positions[i], positions[j]] for i, j in enumerate(one["nearest"])]
    axes.add_collection(LineCollection(lines, colors=GREY, linewidths=0.7, alpha=0.7))
    for name, (x, y), share in zip(one["names"], positions, one["share"], strict=True):
        size = 8 + 30 * share**0.5
        shown = name.replace("$", r"\$")
        axes.text(x, y, shown, fontsize=size, color=_colour(name), ha="center", va="center", zorder=3)
    wide = [max(point[axis] for point in positions) - min(point[axis] for point in positions) for axis in (0, 1)]
    for axis, limits in ((0, axes.set_xlim), (1, axes.set_ylim)):
        low = min(point[axis] for point in positions)
        margin = 0.08 * max(*wide, 1e-3)
        limits(low - margin, low + wide[axis] + margin)
    bare(axes, title)


def _colour(name: str) -> str:
    letter = name.lower()
    if letter in VOWELS:
        return ORANGE
    if letter in CONSONANTS:
        return BLUE
    return GREEN if name.isdigit() else INK
