"""Table 1 of the paper as it was published, and why a value below a floor cannot be one."""

from dataclasses import dataclass

from tessella.data import TABLES


@dataclass(frozen=True)
class Published:
    """Mean test -log P over three seeds and its standard deviation, nats."""

    value: float
    spread: float


# Connect4, Forests, Mushroom, Nursery, PokerHands, USCensus90
_TABLE_1 = {
    "voronoi": ((12.92, 0.07), (14.20, 0.05), (9.06, 0.05), (9.27, 0.04), (19.86, 0.04), (24.19, 0.12)),
    "simplex": ((13.46, 0.01), (16.58, 0.01), (9.26, 0.01), (9.50, 0.00), (19.90, 0.00), (28.09, 0.08)),
    "binary-argmax": ((13.71, 0.04), (16.73, 0.17), (9.53, 0.01), (9.49, 0.00), (19.90, 0.01), (27.23, 0.02)),
    "discrete-flow": ((19.80, 0.01), (21.91, 0.01), (22.06, 0.01), (9.53, 0.01), (19.82, 0.03), (55.62, 0.35)),
}
_ORDER = ("connect4", "forests", "mushroom", "nursery", "pokerhands", "uscensus90")

PUBLISHED: dict[str, dict[str, Published]] = {
    data: {method: Published(*row[i]) for method, row in _TABLE_1.items()} for i, data in enumerate(_ORDER)
}
"""By table, then by method."""

_DISTINCT = (
    "The {rows} rows of the file are all different. Probabilities of different rows add up to at most 1, so the mean "
    "of -log P over the file is at least ln {rows}, whatever the model. Held-out rows alone could lie lower only under "
    "a model that gives its training rows less probability than the rows it never saw."
)
FLOORS: dict[str, str] = {
    "connect4": _DISTINCT.format(rows="67,557"),
    "mushroom": _DISTINCT.format(rows="8,124"),
    "nursery": "The file is the complete grid: each of the 12,960 combinations of its categories once. "
    + _DISTINCT.format(rows="12,960"),
    "pokerhands": "Five cards are dealt in order from 52, so the law of the rows is known: it is uniform over "
    "52 * 51 * 50 * 49 * 48 hands. No model has a mean -log P below its entropy.",
}
"""Why the floor of a table is one."""


def below_floor(data: str, published: Published) -> bool:
    """Whether a published value is too good to be one: under the floor by more than three standard deviations."""
    floor = TABLES[data].floor
    return floor is not None and published.value < floor - 3 * published.spread
