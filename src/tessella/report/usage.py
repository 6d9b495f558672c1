"""What to do with the model, and how to read its numbers."""

from shlex import quote
from typing import Any

from tessella.report.markup import Markup, join, tag

DISCRETE = "categorical, ordinal, boolean, count and date"


def usage(overview: dict[str, Any], model: str) -> tuple[str, str, Markup, Markup]:
    """Lines to copy, with this table's own names."""
    given = next(filter(None, map(_condition, overview["marginals"])), None)
    python = [
        "from tessella import TabularFlow",
        "",
        f"flow = TabularFlow.load({model!r})",
        "flow.score_samples(table)  # log-likelihood of each row, nats",
        "flow.anomalies(table, top=20)  # the oddest rows, and why",
        "flow.sample(1000)  # new rows, in a frame like yours",
        *([f"flow.sample(100, given={given})"] if given else []),
    ]
    folder = quote(model)
    shell = [
        f"tessella score {folder} data.csv --out scores.csv",
        f"tessella anomalies {folder} data.csv --top 20",
        f"tessella sample {folder} --rows 1000 --out new.csv",
    ]
    words = tag("p", "The table may be a pandas, polars or pyarrow frame with the same columns.")
    return "use", "Use the model", words, join(code("Python", python), code("Command line", shell))


def reading(overview: dict[str, Any]) -> tuple[str, str, Markup, Markup]:
    """What a likelihood is, in a few sentences."""
    continuous = any(column["kind"] == "continuous" for column in overview["columns"])
    units = "this table has some, so its values depend on their units and may have either sign"
    exactly = "this table has none, so every value here is the logarithm of the probability of exactly that row"
    kinds = (
        f"In {DISCRETE} columns a likelihood is a probability mass, in continuous columns a density per unit of the "
        f"column; {units if continuous else exactly}."
    )
    better = (
        "The lower the negative log-likelihood, the less unseen rows surprise the model: one nat less per row makes "
        "the average row e \u2248 2.7 times likelier."
    )
    return (
        "read",
        "How to read it",
        tag("p", "What the figures are, in two sentences."),
        join(*map(_paragraph, (kinds, better))),
    )


def _paragraph(text: str) -> Markup:
    return tag("p", text, class_="prose")


def _condition(marginal: dict[str, Any]) -> str | None:
    """A condition on a column's most frequent category, as Python would write it."""
    known = [label for label in marginal["labels"] if label != "missing"]
    return repr({marginal["name"]: known[0]}) if marginal["kind"] == "categorical" and known else None


def code(title: str, lines: list[str]) -> Markup:
    """Lines that can be copied."""
    top = tag("div", tag("span", title), tag("button", "copy", type="button"), class_="code-top")
    return tag("div", top, tag("pre", tag("code", "\n".join(lines))), class_="code")
