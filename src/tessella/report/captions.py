"""What stands beside each picture: first what it says, then, quietly, how it was made."""

from typing import Any

from tessella.report.markup import Markup, join, tag
from tessella.report.wording import duration, ended, learned, named, number

Overview = dict[str, Any]

WITHOUT_TEST = (
    "There was no test part: these are the validation rows, which decided when training stopped and how the "
    "baselines were set. Fit with a test fraction for numbers that owe nothing to the rows they are measured on."
)

NUMBERS = (
    "All models measure numbers alike, as the table of columns below says: a mass on every value of a grid and on "
    "values that repeat, a density elsewhere. {} a number as one of a few dozen ranges and repeated values, spread "
    "inside a range as in the column alone."
)


def likelihood(overview: Overview) -> Markup:
    """What the bars are."""
    fewer = [each for each in overview["likelihoods"] if each["learned_from"] < overview["parts"]["train"]]
    given = "".join(f" {_sentence(named(each))} learned from {each['learned_from']:,} rows." for each in fewer)
    numbers = any(not column["categories"] for column in overview["columns"])
    who = "All of them see" if overview["exact"] else "The others see"
    measured = f" {NUMBERS.format(who)}" if numbers else ""
    draws = f"Its value is a bound from {overview['samples']} draws a row, so it is at least this good"
    bound = "All values are exact" if overview["exact"] else f"{draws}; the others are exact"
    return _words(
        "Mean negative log-likelihood of the same held-out rows, in nats per row, ± its standard error: lower is "
        "better.",
        "Bars show what each model gains over independent columns, with two standard errors of the paired difference. "
        f"The model is {overview['model']}. {bound}, with settings that the validation rows chose.{measured}{given}",
    )


def training(overview: Overview) -> Markup:
    """How long, and why it ended."""
    return _words(
        f"{learned(overview)} {overview['steps']:,} steps in {duration(overview['seconds'])}; {ended(overview)}.",
        f"Nats per row{'' if overview['exact'] else ', with few draws a row, so both lie above the likelihoods'}. A "
        "curve that still falls at its end asks for more time. The first tenth, the steepest, is left out.",
    )


def columns(overview: Overview) -> Markup:
    """How near the samples are."""
    found = overview["marginals"]
    mean, halves = (_percent(sum(each[key] for each in found) / max(1, len(found))) for key in DIFFERENCES)
    return _words(
        f"{overview['sampled_rows']:,} sampled rows beside {overview['real_rows']:,} real ones. To make them agree, "
        f"one would have to change {mean} of a column's values on average; for two halves of the real table, {halves}.",
        "The figure beside each name is that share for the column. Numbers beyond the ends lie in the outermost bars.",
    )


DIFFERENCES = ("difference", "difference_of_halves")


def pairs(overview: Overview) -> Markup:
    """What a square says, and how far apart the maps are."""
    found = overview["association"]
    apart, halves = (number(found[key], 3) for key in DIFFERENCES)
    rest = f" The {found['left_out']} columns with the weakest ties are not shown." if found["left_out"] else ""
    return _words(
        "Did the model learn what columns tell about each other? The stronger a square, the more. The two maps differ "
        f"by {apart} on average, two halves of the real table by {halves}.",
        "Mutual information over the geometric mean of the entropies: 0 for none, 1 if either column gives the other "
        f"away. Numbers are cut at their octiles.{rest}",
    )


def telling(overview: Overview) -> Markup:
    """What the bars are."""
    found = overview["telling"]
    most, name = max(zip(found["together"], found["names"], strict=True))
    return _words(
        "How well could each column be guessed from the others, and which others say most about it? Nearest to a "
        f"function of the rest is {name}: {_percent(most)} of what is uncertain about it is known from them.",
        "A bar is 1 - H(column | all others) / H(column) under the model; the named columns are those that take most "
        "away by themselves, I(other; column) / H(column). Exact but for the rows that they are means over, which the "
        "model drew. Of numbers, the range or repeated value is meant.",
    )


def cells(overview: Overview) -> Markup:
    """Why there are cells."""
    flat = any(picture["dim"] == 2 for picture in overview["cell_maps"])
    dots = "Dots are draws of the learned density; the cell a dot falls into is the category that is sampled. "
    points = "The cells have more than two dimensions: shown are their anchors, from the side on which they vary most. "
    return _words(
        "The model gives every category a region of its own, and learned where the regions lie. Categories that "
        "behave alike in the rest of the table tend to be neighbours.",
        (dots if flat else points) + "Chosen were the columns that have most to do with the others.",
    )


def oddest(overview: Overview) -> Markup:
    """What the bars are, or why there are none."""
    which = (
        f"The {len(overview['odd_rows'])} oddest of the {overview['scored_rows']:,} held-out rows; the typical "
        f"one has {number(overview['typical_score'], 1)} nats."
    )
    if any(row["reasons"] for row in overview["odd_rows"]):
        return _words(
            f"{which} In each, the columns that make it odd.",
            "A bar says by how many nats the row would be likelier with an ordinary value in that column. Rows are "
            "counted from 0.",
        )
    return _words(
        f"{which} Rows are counted from 0.",
        "No columns are named. In a table of many columns it takes long to ask about each of them given all others: "
        "the report does not, tessella anomalies does.",
    )


def samples(overview: Overview) -> Markup:
    """What they are."""
    return _words(
        f"The first {len(overview['sampled'])} rows that the model drew, side by side.",
        "Nobody's rows: every value comes from the learned density, none is copied from the table.",
    )


def table(overview: Overview) -> Markup:
    """What to do where a guess is wrong."""
    parts = overview["parts"]
    purposes = {"train": "training", "validation": "validation", "test": "the test"}
    shares = ", ".join(f"{parts[name]:,} for {purpose}" for name, purpose in purposes.items() if parts[name])
    return _words(
        f"{overview['rows']:,} rows: {shares}.",
        "Types were inferred where none were given. If one is wrong, say so: tessella fit data.csv --types age "
        "continuous",
    )


def _sentence(said: str) -> str:
    return said[0].upper() + said[1:]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _words(said: str, quietly: str) -> Markup:
    return join(tag("p", said), tag("p", quietly, class_="quiet"))
