"""Tables 1 to 4 of the paper as they were published, and why a value below an entropy floor cannot be one."""

from dataclasses import dataclass

from tessella.data import TABLES


@dataclass(frozen=True)
class Published:
    """Mean test -log P over three seeds and its standard deviation, nats; of texts, bits per character."""

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
ENTROPY_FLOORS: dict[str, str] = {
    "connect4": _DISTINCT.format(rows="67,557"),
    "mushroom": _DISTINCT.format(rows="8,124"),
    "nursery": "The file is the complete grid: each of the 12,960 combinations of its categories once. "
    + _DISTINCT.format(rows="12,960"),
    "pokerhands": "Five cards are dealt in order from 52, so the distribution of the rows is known: it is uniform over "
    "52 * 51 * 50 * 49 * 48 hands. No model has a mean -log P below its entropy.",
}
"""Why the entropy floor of a table is one."""


def below_entropy_floor(data: str, published: Published) -> bool:
    """Whether a published value is too good to be one: three standard deviations or more below the entropy floor."""
    floor = TABLES[data].entropy_floor
    return floor is not None and published.value < floor - 3 * published.spread


# Table 4: test NLL of tables of real numbers, and what it says of the budget.
_VECTOR_ORDER = ("power", "gas", "hepmass", "miniboone", "bsds300")
_TABLE_4 = {
    "Real NVP": ((-0.17, 0.01), (-8.33, 0.07), (18.71, 0.01), (13.55, 0.26), (-153.28, 0.89)),
    "MAF": ((-0.24, 0.01), (-10.08, 0.01), (17.73, 0.01), (12.24, 0.22), (-154.93, 0.14)),
    "FFJORD": ((-0.46, 0.01), (-8.59, 0.12), (14.92, 0.08), (10.43, 0.22), (-157.40, 0.19)),
    "coupling": ((-0.44, 0.01), (-11.75, 0.02), (16.78, 0.08), (10.87, 0.06), (-155.14, 0.04)),
    "mixture": ((-0.52, 0.01), (-12.63, 0.05), (16.16, 0.01), (10.24, 0.14), (-156.59, 0.14)),
}

PUBLISHED_VECTORS: dict[str, dict[str, Published]] = {
    data: {method: Published(*row[i]) for method, row in _TABLE_4.items()} for i, data in enumerate(_VECTOR_ORDER)
}
"""By table, then by method; the first three methods are quoted there from other papers."""

BUDGET = (
    "16 to 64 coupling blocks with 3 hidden layers of width 64, 8 to 128 cells, batches of 1,048 rows, learning rate "
    "1e-3 or 5e-3, chosen with early stopping on validation rows; the number of steps is not stated"
)
"""Of the paper's own two methods, from its appendix."""

# Table 2: sets of items, nats per set.
PUBLISHED_ITEMSETS: dict[str, dict[str, Published]] = {
    "retail": {
        "voronoi": Published(9.44, 2.34),
        "simplex": Published(24.16, 0.21),
        "binary-argmax": Published(10.47, 0.42),
        "dpp": Published(20.35, 0.05),
    },
    "accidents": {
        "voronoi": Published(7.81, 2.84),
        "simplex": Published(19.19, 0.01),
        "binary-argmax": Published(6.72, 0.23),
        "dpp": Published(15.78, 0.04),
    },
}
"""By data, then by method."""


@dataclass(frozen=True)
class PublishedText:
    """Bits per character, and their spread where the paper gives it."""

    value: float
    spread: float | None = None


# Table 3: by method and dimension; text8, enwik8.
_TABLE_3: dict[tuple[str, int | None], tuple[PublishedText, PublishedText]] = {
    ("voronoi", 2): (PublishedText(1.39, 0.01), PublishedText(1.46, 0.01)),
    ("voronoi", 4): (PublishedText(1.37, 0.00), PublishedText(1.41, 0.00)),
    ("voronoi", 6): (PublishedText(1.37, 0.00), PublishedText(1.40, 0.00)),
    ("voronoi", 8): (PublishedText(1.36, 0.00), PublishedText(1.39, 0.01)),
    ("binary-argmax", None): (PublishedText(1.38), PublishedText(1.42)),
    ("ordinal", None): (PublishedText(1.43), PublishedText(1.44)),
}

PUBLISHED_TEXTS: dict[str, dict[tuple[str, int | None], PublishedText]] = {
    data: {method: row[i] for method, row in _TABLE_3.items()} for i, data in enumerate(("text8", "enwik8"))
}
"""By text, then by method and dimension; binary argmax and ordinal are quoted there from another paper."""

TEXT_BUDGET = (
    "not stated; the paper takes the network, an autoregressive flow, and the optimizer settings of the open "
    "implementation of argmax flows (Hoogeboom et al., 2021)"
)
"""Of Table 3."""
