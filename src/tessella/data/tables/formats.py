"""From bytes or arrays to codes. Each table has a parser for the published file and one for the compact file."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tessella.data import locate, reading
from tessella.data.tables.schema import Schema, Variable

FromRaw = Callable[..., "Coded"]  # one bytes argument for each raw file
FromCompact = Callable[[dict[str, Any], dict[str, np.ndarray]], "Coded"]

_BINS = 10  # of each numeric column of Forests
_WILDERNESS, _SOIL = 4, 40


@dataclass(frozen=True)
class Coded:
    """A whole table in its file's order, label and id columns left out: `codes[i, n] < schema.counts[n]`."""

    schema: Schema
    codes: np.ndarray  # (rows, N), small unsigned integers

    def __post_init__(self) -> None:
        if len(self.codes) == 0 or self.codes.shape[1:] != (len(self.schema.variables),):
            raise ValueError(
                f"got codes of shape {self.codes.shape}; expected some rows of {len(self.schema.variables)} columns"
            )
        for variable, largest in zip(self.schema.variables, self.codes.max(axis=0), strict=True):
            if largest >= len(variable.categories):
                count = len(variable.categories)
                raise ValueError(f"column {variable.name!r}: code {largest} has no category ({count} known values)")

    def varying(self) -> "Coded":
        """Without the columns that have a single category: they carry no information."""
        keep = [n for n, count in enumerate(self.schema.counts) if count > 1]
        return Coded(Schema(tuple(self.schema.variables[n] for n in keep)), self.codes[:, keep])


# Tables of words: Connect-4, Mushroom, Nursery


def words_from_compact(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Coded:
    """X as it is; names and categories from the description."""
    columns = [column for column in description["columns"] if column["role"] == "feature"]
    return Coded(Schema(tuple(Variable(c["name"], tuple(c["categories"])) for c in columns)), arrays["X"])


def words_from_raw(stem: str) -> FromRaw:
    """A parser for comma-separated words without a header; columns and known values as the shipped description says."""

    def parse(text: bytes) -> Coded:
        columns = reading.describe(locate.SHIPPED / f"{stem}.json")["columns"]
        schema = Schema(tuple(Variable(c["name"], tuple(c["categories"])) for c in columns))
        codes = schema.encode([line.split(",") for line in text.decode("ascii").splitlines() if line])
        features = [n for n, column in enumerate(columns) if column["role"] == "feature"]
        kept = Schema(tuple(schema.variables[n] for n in features))
        return Coded(kept, codes[:, features].numpy().astype(np.uint8))

    return parse


# Poker hands: five cards, each a suit 1-4 and a rank 1-13

POKER = Schema(
    tuple(
        Variable(f"{letter}{card}", tuple(str(k) for k in range(1, count + 1)))
        for card in range(1, 6)
        for letter, count in (("S", 4), ("C", 13))
    )
)


def poker_from_raw(testing: bytes, training: bytes) -> Coded:
    """The testing file first, then the training file, as in the published split; the last column is the label."""
    return _poker(*(_integers(text, columns=11)[:, :10] for text in (testing, training)))


def poker_from_compact(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Coded:
    """What there is of the testing file first, then the training file."""
    return _poker(arrays["X_test100k"], arrays["X_train"])


def _poker(*parts: np.ndarray) -> Coded:
    values = np.concatenate(parts)
    if values.min() < 1:
        raise ValueError(f"poker hands: value {values.min()} is neither a suit 1-4 nor a rank 1-13")
    return Coded(POKER, (values - 1).astype(np.uint8))


def simulate(rows: int, seed: int) -> Coded:
    """P(hand) = 1 / (52 * 51 * 50 * 49 * 48): ordered deals of five different cards, the law of the poker file."""
    generator = np.random.default_rng(seed)
    cards = np.empty((rows, 5), dtype=np.int64)
    for drawn in range(5):
        pick = generator.integers(52 - drawn, size=rows)  # the pick-th of the cards still in the deck
        for earlier in np.sort(cards[:, :drawn], axis=1).T:
            pick += pick >= earlier
        cards[:, drawn] = pick
    return Coded(POKER, np.stack([cards // 13, cards % 13], axis=2).reshape(rows, 10).astype(np.uint8))


# Forests: ten numbers in ten bins each, then one-hot wilderness area and soil type

_TERRAIN = (
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
)


def forests_from_raw(text: bytes) -> Coded:
    """Ten numbers, 4 + 40 bits, and the cover type, which is the label."""
    values = _integers(text, columns=len(_TERRAIN) + _WILDERNESS + _SOIL + 1)
    return _forests(values[:, : len(_TERRAIN)], values[:, len(_TERRAIN) : -1])


def forests_from_compact(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Coded:
    """The compact file keeps the position of the set bit; here it becomes bits again."""
    places = (
        (np.eye(_WILDERNESS, dtype=np.uint8), arrays["wilderness"]),
        (np.eye(_SOIL, dtype=np.uint8), arrays["soil"]),
    )
    return _forests(arrays["C"], np.concatenate([bits[place] for bits, place in places], axis=1))


def _forests(terrain: np.ndarray, bits: np.ndarray) -> Coded:
    names = [f"Wilderness_Area{k + 1}" for k in range(_WILDERNESS)] + [f"Soil_Type{k + 1}" for k in range(_SOIL)]
    binned = [_equal_width(name, column) for name, column in zip(_TERRAIN, terrain.T, strict=True)]
    variables = [variable for variable, _ in binned] + [Variable(name, ("0", "1")) for name in names]
    codes = np.concatenate([np.stack([codes for _, codes in binned], axis=1), bits], axis=1)
    return Coded(Schema(tuple(variables)), codes.astype(np.uint8))


def _equal_width(name: str, column: np.ndarray) -> tuple[Variable, np.ndarray]:
    """Ten bins between min and max + 1, each named by its edges."""
    edges = np.linspace(column.min(), int(column.max()) + 1, _BINS + 1)
    labels = tuple(f"[{low:g}, {high:g})" for low, high in pairwise(edges))
    return Variable(name, labels), np.digitize(column, edges) - 1


# US Census 1990: small integers


def census_from_raw(text: bytes) -> Coded:
    """A header row, then caseid and 68 small integers; the values of a column are its categories."""
    names = text[: text.index(b"\n")].decode("ascii").strip().split(",")
    values = _integers(text, columns=len(names), header=1)[:, 1:]
    codes, variables = np.empty(values.shape, dtype=np.uint8), []
    for n, name in enumerate(names[1:]):
        kinds = np.unique(values[:, n])
        codes[:, n] = np.searchsorted(kinds, values[:, n])
        variables.append(Variable(name, tuple(map(str, kinds))))
    return Coded(Schema(tuple(variables)), codes)


def census_from_compact(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Coded:
    """Item numbers stand for values; the names of the attributes are not known."""
    columns = description["columns"]
    variables = (Variable(f"attribute{c['position']}", tuple(map(str, c["items"]))) for c in columns)
    return Coded(Schema(tuple(variables)), arrays["X"])


def _integers(text: bytes, columns: int, header: int = 0) -> np.ndarray:
    """Comma-separated integers, (rows, columns)."""
    values = np.loadtxt(io.BytesIO(text), dtype=np.int32, delimiter=",", skiprows=header, ndmin=2)
    if values.shape[1] != columns:
        raise ValueError(f"got {values.shape[1]} columns of numbers; expected {columns}")
    return values
