"""The sections of the page, each from the plain data of an overview."""

from collections.abc import Callable, Iterable
from typing import Any

from tessella.report import captions, charts
from tessella.report.markup import Markup, join, tag
from tessella.report.wording import duration, ended, number, verdict

Overview = dict[str, Any]

FEWEST_TILES = 5  # of an ornament; three would look like a pie chart


def header(overview: Overview) -> Markup:
    """The verdict in plain words, and the facts of the fit."""
    title, story = verdict(overview)
    facts = {
        "rows": f"{overview['rows']:,}",
        "columns": f"{len(overview['columns']):,}",
        "learned from": f"{overview['parts']['train']:,} rows",
        "model": overview["model"],
        "training time": duration(overview["seconds"]),
        "ended by": ended(overview),
    }
    listed = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()]
    notes = [] if overview["held_out"] == "test" else [tag("p", captions.WITHOUT_TEST, class_="caution")]
    band = tag("div", tag("span", "tessella", class_="brand"), tag("span", "report of a fitted table"), class_="band")
    richest = sorted(overview["cell_maps"], key=lambda picture: -len(picture["cells"]))[:1]
    drawn = [charts.cell_map(picture, named=False) for picture in richest if len(picture["cells"]) >= FEWEST_TILES]
    ornament = [tag("div", picture, class_="ornament") for picture in drawn]
    said = tag("div", tag("h1", title), tag("p", story, class_="lead"), *notes)
    return tag("header", band, tag("div", said, *ornament, class_="opening"), tag("dl", *listed))


def likelihood(overview: Overview) -> Markup:
    """The model beside its baselines."""
    return charts.gains(overview["likelihoods"])


def training(overview: Overview) -> Markup:
    """The curve."""
    return tag("div", _key("training rows", "validation rows"), charts.curve(overview["curve"]), class_="narrow")


def columns(overview: Overview) -> Markup:
    """A card for every column."""
    cards = []
    for marginal in overview["marginals"]:
        chart = charts.histogram(marginal) if marginal["ends"] else charts.category_bars(marginal)
        apart = tag("span", f"{100 * marginal['difference']:.1f}%", title="share of rows one would have to change")
        cards.append(tag("div", tag("h3", tag("span", marginal["name"]), apart), chart, class_="card"))
    return join(_key("real", "sampled by the model"), tag("div", *cards, class_="cards"))


def pairs(overview: Overview) -> Markup:
    """Two maps of associations."""
    found = overview["association"]
    maps = [
        tag("figure", tag("figcaption", title), charts.heatmap(found["names"], found[key], title))
        for key, title in (("real", "real"), ("sampled", "sampled by the model"))
    ]
    scale = tag("p", "0", tag("i", class_="scale"), "1", class_="key")
    return join(tag("div", *maps, class_="two"), scale)


def telling(overview: Overview) -> Markup:
    """How much is known about each column from the others, and from which."""
    return charts.telling(overview["telling"])


def cells(overview: Overview) -> Markup:
    """The cell maps."""
    pictures = [
        tag("figure", tag("figcaption", picture["name"]), charts.cell_map(picture)) for picture in overview["cell_maps"]
    ]
    return tag("div", *pictures, class_="two")


def oddest(overview: Overview) -> Markup:
    """The rows that surprise most, with reasons."""
    largest = max([reason["contribution"] for row in overview["odd_rows"] for reason in row["reasons"]], default=1.0)
    names = _names(overview)
    shown = []
    for row in overview["odd_rows"]:
        title = tag("h3", tag("span", f"row {row['row']}"), tag("span", f"{number(row['score'], 1)} nats"))
        values = [_line(name, [value]) for name, value in zip(names, row["values"], strict=True)]
        everything = tag("details", tag("summary", f"all {len(names)} values"), _table(values))
        shown.append(tag("div", title, charts.reasons(row, largest), everything, class_="card"))
    return tag("div", *shown, class_="cards wide")


def samples(overview: Overview) -> Markup:
    """Sampled rows, turned so that they fit a phone."""
    head = tag("tr", tag("th", ""), *[tag("th", str(i + 1)) for i in range(len(overview["sampled"]))])
    body = [_line(name, [row[i] for row in overview["sampled"]]) for i, name in enumerate(_names(overview))]
    return tag("div", _table([head, *body]), class_="scroll")


def table(overview: Overview) -> Markup:
    """Columns and their types."""
    head = tag("tr", *[tag("th", name) for name in ("column", "type", "categories", "missing", "measured by")])
    body = []
    for column in overview["columns"]:
        categories = f"{column['categories']:,}" if column["categories"] else ""
        missing = f"{100 * column['missing']:.1f}%" if column["missing"] else "none"
        measure = column["measure"] or "masses on categories"
        body.append(_line(column["name"], [column["kind"], categories, missing, measure]))
    return tag("div", _table([head, *body]), class_="scroll")


def _names(overview: Overview) -> list[str]:
    return [column["name"] for column in overview["columns"]]


def _line(name: str, values: Iterable[str]) -> Markup:
    return tag("tr", tag("th", name), *[tag("td", value) for value in values])


def _table(lines: Iterable[Markup]) -> Markup:
    return tag("table", tag("tbody", *lines))


def _key(first: str, second: str) -> Markup:
    """What the two colours are."""
    return tag("p", tag("i", class_="real"), first, tag("i", class_="sampled"), second, class_="key")


Part = Callable[[Overview], Markup]

SECTIONS: list[tuple[str, str, Part, Part]] = [
    ("likelihood", "Likelihood", captions.likelihood, likelihood),
    ("training", "Training", captions.training, training),
    ("columns", "Columns", captions.columns, columns),
    ("pairs", "Pairs of columns", captions.pairs, pairs),
    ("telling", "What columns tell", captions.telling, telling),
    ("cells", "Learned cells", captions.cells, cells),
    ("odd", "The oddest rows", captions.oddest, oddest),
    ("samples", "Sampled rows", captions.samples, samples),
    ("table", "The table", captions.table, table),
]
"""Anchor, title, words, picture."""
