"""The page of fitted baskets: its opening and its sections, from the plain data of an overview."""

from shlex import quote
from typing import Any

from tessella.report import charts
from tessella.report.markup import Markup, join, tag
from tessella.report.usage import code
from tessella.report.wording import CLEAR, duration, ended, nats, number, times

Overview = dict[str, Any]
Section = tuple[str, str, Markup, Markup]


def header(overview: Overview) -> Markup:
    """The verdict in plain words, and the facts of the fit."""
    own = overview["likelihoods"][0]
    part = "test baskets that it never saw" if overview["held_out"] == "test" else "validation baskets"
    value = nats(own["nll"], own["error"])
    most = "" if own["exact"] else "at most "
    figure = f"On {overview['scored']:,} {part}, the model's negative log-likelihood is {most}{value} nats."
    if overview["model"] == "independent":
        title = "Nothing was found that items tell about each other"
        story = f"{figure} The validation baskets preferred independent items to anything else."
    elif own["gain"] > CLEAR * own["gain_error"]:
        title = f"{_subject(overview)}, ahead of independent items by {number(own['gain'])} nats"
        story = f"{figure} An average basket is {times(own['gain'])} likelier than under independent items."
    else:
        title = f"{_subject(overview)}: about as good a guess as independent items"
        by = nats(own["gain"], own["gain_error"])
        story = f"{figure} Its lead over independent items, {by} nats, is no clear difference."
    facts = {
        "baskets": f"{overview['baskets']:,}",
        "items": f"{overview['items']:,}",
        "learned from": f"{overview['parts']['train']:,} baskets",
        "model": own["name"],
        "fitted in": duration(overview["seconds"]),
        "ended by": ended(overview).replace("rows", "baskets"),
    }
    listed = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()]
    band = tag("div", tag("span", "tessella", class_="brand"), tag("span", "report of baskets"), class_="band")
    return tag("header", band, tag("h1", title), tag("p", story, class_="lead"), tag("dl", *listed))


def sections(overview: Overview, model: str) -> list[Section]:
    """Anchor, title, words, picture of each."""
    drawn = f"{overview['sampled_baskets']:,} sampled baskets beside {overview['baskets']:,} real ones."
    found = [
        (
            "likelihood",
            "Likelihood",
            _words(
                "Mean negative log-likelihood of the same held-out baskets, in nats, ± its standard error: lower is "
                "better.",
                "Of the whole set: how many items, and which; no order counts. "
                f"{'Exact.' if overview['exact'] else 'The model gives a bound.'} Bars show the gain over items that "
                "are independent given their number, with two standard errors of the paired difference.",
            ),
            charts.gains(overview["likelihoods"]),
        ),
        (
            "models",
            "Models",
            _words(
                "Mean negative log-likelihood of the validation baskets under each model, in nats; the lowest is kept.",
                "Models that count come first; those that learn share what is left of the time, where that can pay.",
            ),
            _tried(overview),
        ),
        (
            "sizes",
            "Sizes",
            _words(drawn, "How many items a basket has; the largest hundredth is in the last bar."),
            tag("div", _key(), charts.histogram(overview["sizes"]), class_="narrow"),
        ),
        (
            "frequencies",
            "Items",
            _words(
                "The most frequent items: the share of baskets that hold each, real above sampled.",
                f"They differ by {100 * overview['frequency_error']:.2f}% of the baskets on average.",
            ),
            join(_key(), tag("div", charts.category_bars(overview["frequencies"]), class_="narrow")),
        ),
    ]
    if overview["item_map"] is not None:
        found.append(("map", "The map of items", _map_words(overview), charts.item_map(overview["item_map"])))
    found.append(("odd", "The oddest baskets", _odd_words(overview), _odd(overview)))
    found.append(("samples", "Sampled baskets", _words("Drawn by the model.", "Nobody's baskets."), _samples(overview)))
    return [*found, _usage(model)]


def _subject(overview: Overview) -> str:
    """Of the headline."""
    if overview["model"] == "mixture":
        return f"{overview['components']} kinds of baskets"
    return str(overview["likelihoods"][0]["name"]).capitalize()


def _tried(overview: Overview) -> Markup:
    """A line for each model: its value, or why it has none."""
    lines = []
    for one in overview["tried"]:
        name = tag("span", one["name"], *([tag("em", "kept")] if one["chosen"] else []), class_="who")
        bound = "" if one["exact"] else "≤ "
        said = f"not tried: {one['why']}" if one["validation"] is None else bound + number(one["validation"], 3)
        lines.append(tag("li", name, " ", tag("span", said, class_="figure")))
    return tag("ul", *lines)


def _map_words(overview: Overview) -> Markup:
    found, by = overview["item_map"], "P(kind | item)" if overview["model"] == "mixture" else "their vectors"
    return _words(
        "Items that come in the same kinds of baskets are neighbours. The larger a dot, the more baskets hold it.",
        f"The {len(found['labels'])} most frequent items by t-SNE of {by}; names of the first {found['named']} where "
        "there is room, all others when pointed at. Near means alike; far says little.",
    )


def _odd_words(overview: Overview) -> Markup:
    return _words(
        f"The least likely of the {overview['scored']:,} held-out baskets of three items or more, by nats per item, "
        "and the item that is the least expected in each, given the others.",
        "The figure is the log-likelihood of the basket; the bar -log P(item | the others, and one more).",
    )


def _odd(overview: Overview) -> Markup:
    largest = max([row["surprise"] for row in overview["odd"]], default=1.0) or 1.0
    cards = []
    for row in overview["odd"]:
        title = tag("h3", tag("span", f"basket {row['basket']}"), tag("span", f"{number(row['score'], 1)} nats"))
        reason = {"column": "item", "value": row["item"], "contribution": row["surprise"]}
        items = tag("p", _listed(row["items"], row["size"]), class_="quiet")
        cards.append(tag("div", title, charts.reasons({"reasons": [reason]}, largest), items, class_="card"))
    return tag("div", *cards, class_="cards wide")


def _samples(overview: Overview) -> Markup:
    return tag(
        "div", *[tag("div", _listed(one, len(one)), class_="card") for one in overview["sampled"]], class_="cards"
    )


def _listed(items: list[str], size: int) -> str:
    return ", ".join(items) + (f", and {size - len(items)} more" if size > len(items) else "")


def _usage(model: str) -> Section:
    folder = quote(model)
    lines = [
        f"tessella baskets score {folder} baskets.csv --out scores.csv",
        f"tessella baskets complete {folder} ITEM ITEM --n 5",
        f"tessella baskets anomalies {folder} baskets.csv",
        f"tessella baskets sample {folder} --baskets 100 --out new.csv",
    ]
    words = _words("On the command line.", "In Python: tessella.SetFlow.load.")
    return "use", "Use the model", words, code("Command line", lines)


def _key() -> Markup:
    return tag("p", tag("i", class_="real"), "real", tag("i", class_="sampled"), "sampled by the model", class_="key")


def _words(said: str, quietly: str) -> Markup:
    return join(tag("p", said), tag("p", quietly, class_="quiet"))
