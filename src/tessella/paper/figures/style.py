"""One look for every figure."""

from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, PAPER, BLUE, ORANGE, GREEN, GREY = "#1f2933", "#ffffff", "#2b6cb0", "#dd6b20", "#2f855a", "#9aa5b1"
RED, TEAL, PURPLE = "#c53030", "#0d9488", "#805ad5"
DENSITY = "Blues"
COLOURS = 256  # of a picture


def can_draw() -> bool:
    """Whether matplotlib is here; runs on machines without it leave records, and pictures are drawn elsewhere."""
    return find_spec("matplotlib") is not None


def new_figure(
    columns: int, rows: int = 1, panel: tuple[float, float] = (3.2, 3.2), gap: float = 0.02
) -> tuple["Figure", list["Axes"]]:
    """A figure of rows x columns panels, and its axes as a flat list. No window, no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(panel[0] * columns, panel[1] * rows), facecolor=PAPER)
    figure.set_layout_engine("constrained", wspace=gap)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def save(figure: "Figure", path: Path) -> Path:
    """Write a PNG that is sharp on a good screen, with a palette: a third of the bytes."""
    from PIL import Image  # late: as matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=160, format="png")
    Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def bare(axes: "Axes", title: str = "") -> None:
    """No ticks, equal scales: for pictures of the plane."""
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.set_title(title, fontsize=11, color=INK)
    for spine in axes.spines.values():
        spine.set_color(GREY)
