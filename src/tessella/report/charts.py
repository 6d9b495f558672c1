"""Small charts as inline SVG and HTML; colours are classes, so that light and dark are the style sheet's business.

Drawings are about as wide as a phone, so that their letters are the same size everywhere.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any

from tessella.report.markup import Markup, join, tag
from tessella.report.wording import nats, number

SHORT = 16  # characters of a name inside a drawing
TILES = 12  # colours
CURVES = ("loss", "validation")
TELLERS, LEAST_TOLD = 3, 0.01  # columns that are named, and what they must tell


def svg(width: float, height: float, *children: str, label: str) -> Markup:
    """A drawing that fills the width it is given."""
    shape = f"0 0 {width:g} {height:g}"
    return tag("svg", *children, viewBox=shape, role="img", aria_label=label)


def short(text: str, most: int = SHORT) -> str:
    """A text, cut where it is too long.

    >>> short("stalk-surface-above-ring")
    'stalk-surface-a…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def gains(likelihoods: Sequence[dict[str, Any]]) -> Markup:
    """Bars of nats per row gained over independent columns, with two standard errors to either side."""
    low = min(0.0, *(each["gain"] - 2 * each["gain_error"] for each in likelihoods))
    high = max(1e-9, *(each["gain"] + 2 * each["gain_error"] for each in likelihoods))
    best = min(each["nll"] for each in likelihoods)

    def place(value: float) -> float:
        return float(100 * (value - low) / (high - low))

    def span(kind: str, start: float, end: float) -> Markup:
        left, right = sorted((place(start), place(end)))
        return tag("i", class_=kind, style=f"left:{left:.2f}%;width:{right - left:.2f}%")

    rows = []
    for each in likelihoods:
        gain, error = each["gain"], 2 * each["gain_error"]
        whisker = [span("whisker", gain - error, gain + error)] if error else []
        own = " own" if each is likelihoods[0] else ""
        bound = "" if each["exact"] else "≤ "
        rows.append(
            tag(
                "div",
                tag("span", each["name"], *([tag("em", "best")] if each["nll"] == best else []), class_="who"),
                tag("span", bound + nats(each["nll"], each["error"]), class_="figure"),
                tag("span", span("bar", 0, gain), *whisker, span("zero", 0, 0), class_="track"),
                class_="gain" + own,
            )
        )
    return tag("div", *rows, class_="gains")


def curve(history: Sequence[dict[str, Any]]) -> Markup:
    """Loss and validation value against steps, without the first tenth, next to which the rest would look flat."""
    last = max(1, history[-1]["step"])
    shown = [row for row in history if row["step"] >= last / 10]
    lines = {key: [(row["step"], row[key]) for row in shown if row.get(key) is not None] for key in CURVES}
    values = [y for points in lines.values() for _, y in points] or [0.0]
    low, high = min(values), max(values)
    width, left, floor, ceiling = 420.0, 44.0, 190.0, 10.0

    def across(x: float) -> float:
        return float(left + (width - left - 8) * x / last)

    def up(y: float) -> float:
        return float(floor - (floor - ceiling) * (y - low) / max(high - low, 1e-9))

    marks, digits = [], 1 if high - low > 1 else 2 if high - low > 0.1 else 3
    for value in (low, (low + high) / 2, high):
        marks.append(tag("line", x1=left, x2=width - 8, y1=up(value), y2=up(value), class_="rule"))
        marks.append(tag("text", number(value, digits), x=left - 6, y=up(value) + 4, text_anchor="end"))
    marks.append(tag("text", "0", x=left, y=floor + 22))
    marks.append(tag("text", f"{last:,} steps", x=across(last), y=floor + 22, text_anchor="end"))
    for key, points in lines.items():
        corners = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        marks.append(tag("polyline", points=corners, class_=f"line {key}"))
    return svg(width, floor + 30, *marks, label="training curve")


def category_bars(marginal: dict[str, Any]) -> Markup:
    """Two thin bars for every category: real above sampled."""
    largest = max(*marginal["real"], *marginal["sampled"], 1e-9)
    rows = []
    for label, real, sampled in zip(marginal["labels"], marginal["real"], marginal["sampled"], strict=True):
        bars = [
            tag("i", class_=kind, style=f"width:{100 * share / largest:.1f}%")
            for kind, share in (("real", real), ("sampled", sampled))
        ]
        said = f"{label}: {100 * real:.1f}% of real rows, {100 * sampled:.1f}% of sampled ones"
        name = tag("span", label, class_="name")
        share = tag("span", f"{100 * real:.0f}%", class_="share")
        rows.append(tag("div", name, tag("span", *bars, class_="pair"), share, class_="category", title=said))
    return tag("div", *rows, class_="categories")


def histogram(marginal: dict[str, Any]) -> Markup:
    """Real numbers as bars, sampled ones as an outline, and the missing ones apart."""
    missing = marginal["labels"][-1:] == ["missing"]
    bars = len(marginal["labels"]) - missing
    width, height = 300.0, 110.0
    step = width / (bars + 2.5 * missing)
    largest = max(*marginal["real"], *marginal["sampled"], 1e-9)
    tall = [[(height - 4) * share / largest for share in marginal[key]] for key in ("real", "sampled")]
    drawn = [
        tag("rect", x=i * step + 0.4, y=height - y, width=step - 0.8, height=y, class_="real")
        for i, y in enumerate(tall[0][:bars])
    ]
    corners = [f"{x:.1f},{height - y:.1f}" for i, y in enumerate(tall[1][:bars]) for x in (i * step, (i + 1) * step)]
    drawn.append(tag("polyline", points=" ".join(corners), class_="outline"))
    if missing:
        x, (real, sampled) = width - 1.5 * step, (column[-1] for column in tall)
        drawn.append(tag("rect", x=x, y=height - real, width=1.5 * step, height=real, class_="real"))
        top = height - sampled
        drawn.append(tag("polyline", points=f"{x:.1f},{top:.1f} {width:.1f},{top:.1f}", class_="outline"))
    drawn.append(tag("line", x1=0, x2=width, y1=height, y2=height, class_="rule"))
    said = [f"missing {100 * marginal['real'][-1]:.0f}%"] if missing else []
    ends = tag("div", *[tag("span", end) for end in [*marginal["ends"], *said]], class_="ends")
    return join(svg(width, height, *drawn, label=f"histogram of {marginal['name']}"), ends)


def heatmap(names: Sequence[str], matrix: Sequence[Sequence[float]], what: str) -> Markup:
    """A square for every pair of columns, the stronger the more they tell of each other."""
    left, width = 116.0, 420.0
    step = (width - left) / len(names)
    letters = min(12.0, max(8.0, step * 0.8))
    drawn = []
    for i, first in enumerate(names):
        style = f"font-size:{letters:.1f}px"
        line = (i + 0.5) * step + letters / 3
        drawn.append(tag("text", short(first, 18), x=left - 6, y=line, text_anchor="end", style=style))
        for j, second in enumerate(names):
            said = [] if i == j else [tag("title", f"{first}, {second}: {matrix[i][j]:.2f}")]
            place = {"x": left + j * step + 0.4, "y": i * step + 0.4, "width": step - 0.8, "height": step - 0.8}
            strength = None if i == j else f"{0.04 + 0.96 * sqrt(matrix[i][j]):.3f}"
            drawn.append(tag("rect", *said, **place, class_="self" if i == j else "heat", fill_opacity=strength))
    return svg(width, step * len(names), *drawn, label=f"associations, {what}")


def telling(found: dict[str, Any]) -> Markup:
    """A bar for every column, how much the others tell about it, with those that tell most."""
    rows = []
    for j in sorted(range(len(found["names"])), key=lambda j: -found["together"][j]):
        alone = sorted(((found["share"][i][j], name) for i, name in enumerate(found["names"])), reverse=True)
        tellers = [f"{name} {100 * share:.0f}%" for share, name in alone[:TELLERS] if share >= LEAST_TOLD]
        who = tag("span", found["names"][j], tag("small", ", ".join(tellers)), class_="who")
        share = tag("span", f"{100 * found['together'][j]:.0f}%", class_="figure")
        bar = tag("i", class_="bar", style=f"left:0;width:{100 * found['together'][j]:.1f}%")
        rows.append(tag("div", who, share, tag("span", bar, class_="track thin"), class_="gain own"))
    return tag("div", *rows, class_="gains")


def cell_map(picture: dict[str, Any], named: bool = True) -> Markup:
    """Cells as tiles, draws of the density as dust, anchors with their categories."""
    left, right, bottom, top = picture["window"]
    size = 300.0

    def at(point: Sequence[float]) -> tuple[float, float]:
        return size * (point[0] - left) / (right - left), size * (top - point[1]) / (top - bottom)

    drawn = []
    for k, cell in enumerate(picture["cells"]):
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, cell))
        said = tag("title", f"{picture['categories'][k]}: {100 * picture['shares'][k]:.1f}% of the rows")
        drawn.append(tag("polygon", said, points=corners, class_=f"tile tile-{k % TILES}"))
    if named:
        inside = [(x, y) for x, y in map(at, picture["points"]) if 0 <= x <= size and 0 <= y <= size]
        drawn += [tag("circle", cx=x, cy=y, r=1.1, class_="dust") for x, y in inside]
        for category, anchor in zip(picture["categories"], picture["anchors"], strict=True):
            drawn += _anchor(short(category), *at(anchor), size)
    return svg(size, size, *drawn, label=f"cells of {picture['name']}")


def _anchor(name: str, x: float, y: float, size: float) -> list[Markup]:
    """A point and its name, which stays inside the picture."""
    half = 3.6 * len(name)
    middle = min(max(x, half), size - half)
    dot = tag("circle", cx=x, cy=y, r=2.6, class_="anchor")
    return [dot, tag("text", name, x=middle, y=y - 7, text_anchor="middle", class_="halo")]


def item_map(found: dict[str, Any]) -> Markup:
    """Items as dots, the larger the more frequent; names where there is room, the most frequent first."""
    width, height, edge = 840.0, 620.0, 30.0
    ends = [(min(axis), max(axis)) for axis in zip(*found["points"], strict=True)]

    def at(point: Sequence[float]) -> tuple[float, float]:
        (left, right), (low, high) = ends
        x, y = (point[0] - left) / max(right - left, 1e-9), (point[1] - low) / max(high - low, 1e-9)
        return edge + (width - 2 * edge) * x, height - edge - (height - 2 * edge) * y

    largest, dots, names = max(*found["shares"], 1e-9), [], []
    taken: list[tuple[float, float, float]] = []
    for place, (label, point, share) in enumerate(zip(found["labels"], found["points"], found["shares"], strict=True)):
        x, y = at(point)
        said = tag("title", f"{label}: in {100 * share:.2f}% of the baskets")
        radius = 2 + 9 * sqrt(share / largest)
        dots.append(tag("circle", said, cx=x, cy=y, r=radius, class_="heat", fill_opacity="0.45"))
        name = short(label)
        half = 3.6 * len(name)
        free = all(abs(x - a) > half + b or abs(y - c) > 13 for a, b, c in taken)
        if place < found["named"] and free:
            taken.append((x, half, y))
            names.append(
                tag("text", name, x=min(max(x, half), width - half), y=y + 4, text_anchor="middle", class_="halo")
            )
    return svg(width, height, *dots, *names, label="map of items")


def reasons(row: dict[str, Any], largest: float) -> Markup:
    """For every reason its column, its value and a bar."""
    rows = []
    for reason in row["reasons"]:
        bar = tag("i", class_="why", style=f"width:{100 * reason['contribution'] / largest:.1f}%")
        what = tag("span", reason["column"], " = ", tag("b", reason["value"]), class_="what")
        figure = tag("span", number(reason["contribution"], 1, sign=True), class_="share")
        rows.append(tag("div", what, tag("span", bar, class_="pair"), figure, class_="reason"))
    return tag("div", *rows, class_="reasons")
