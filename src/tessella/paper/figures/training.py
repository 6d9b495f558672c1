"""How a run went: loss and validation against steps."""

from pathlib import Path

from tessella.paper.figures.style import BLUE, ORANGE, new_figure, save


def draw_training_curve(path: Path, metrics: list[dict[str, float]], entropy_floor: float | None) -> Path:
    """Loss and validation bound against steps."""
    figure, (axes,) = new_figure(1, panel=(5.5, 3.2))
    for key, colour in (("loss", BLUE), ("validation", ORANGE)):
        points = [(row["step"], row[key]) for row in metrics if row.get(key) is not None]
        axes.plot(*zip(*points, strict=True), color=colour, label=key, lw=1.2)
    if entropy_floor is not None:
        axes.axhline(entropy_floor, color="black", lw=0.8, ls="--", label="entropy floor")
    axes.set(xlabel="step", ylabel="nats per row")
    axes.legend(frameon=False)
    return save(figure, path)
