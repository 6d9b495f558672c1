"""From bytes or arrays to codes. Each table has a parser for the published file and one for the compact file."""

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tessella.data import locate, reading
from tessella.data.forms import Extent
from tessella.data.tables.columns import Column

FromRaw = Callable[..., "Coded"]  # the bytes of each raw file

_BINS = 10  # of each numeric column of Forests
_WILDERNESS, _SOIL = 4, 40


@dataclass(frozen=True)
class Coded:
    """A whole table in its file's order, label and id columns left out: `codes[i, n] < len(columns[n].categories)`."""

    columns: tuple[Column, ...]
    codes: np.ndarray  # (rows, N), small unsigned integers

    def __post_init__(self) -> None:
        if len(self.codes) == 0 or self.codes.shape[1:] != (len(self.columns),):
            raise ValueError(
                f"got codes of shape {self.codes.shape}; expected some rows of {len(self.columns)} columns"
            )
        for column, largest in zip(self.columns, self.codes.max(axis=0), strict=True):
            if largest >= (count := len(column.categories)):
                raise ValueError(f"column {column.name!r}: code {largest} has no category ({count} known values)")

    @property
    def extent(self) -> Extent:
        """Rows, columns, and the most categories."""
        return Extent(len(self.codes), len(self.columns), max(len(column.categories) for column in self.columns))

    def varying(self) -> "Coded":
        """Without the columns that have a single category: they carry no information."""
        keep = [n for n, column in enumerate(self.columns) if len(column.categories) > 1]
        return Coded(tuple(self.columns[n] for n in keep), self.codes[:, keep])


def words(name: str, categories: Iterable[Any]) -> Column:
    """A column of words; how often each comes is not counted."""
    return Column(name, "categorical", tuple(map(str, categories)))


# Tables of words: Connect-4, Mushroom, Nursery


def words_from_compact(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Coded:
    """X as it is; names and categories from the description."""
    return Coded(tuple(words(c["name"], c["categories"]) for c in _features(description["columns"])), arrays["X"])


def words_from_raw(stem: str) -> FromRaw:
    """A parser for comma-separated words without a header; columns and known values as the shipped description says."""

    def parse(text: bytes) -> Coded:
        described = reading.describe(locate.SHIPPED / f"{stem}.json")["columns"]
        rows = [line.split(",") for line in text.decode("ascii").splitlines() if line]
        for number, row in enumerate(rows):
            if len(row) != len(described):
                raise ValueError(f"row {number}: got {len(row)} values; expected {len(described)}, one for each column")
        values = dict(zip((c["name"] for c in described), zip(*rows, strict=True), strict=True))
        columns = tuple(words(c["name"], c["categories"]) for c in _features(described))
        codes = [column.encode(values[column.name]) for column in columns]
        return Coded(columns, np.stack(codes, axis=1).astype(np.uint8))

    return parse


def _features(described: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [column for column in described if column["role"] == "feature"]


# Poker hands: five cards, each a suit 1-4 and a rank 1-13

POKER = tuple(
    words(f"{letter}{card}", range(1, count + 1)) for card in range(1, 6) for letter, count in (("S", 4), ("C", 13))
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
    """P(hand) = 1 / (52 * 51 * 50 * 49 * 48): ordered deals of five different cards, as in the poker file."""
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
    binned = [_equal_width(name, numbers) for name, numbers in zip(_TERRAIN, terrain.T, strict=True)]
    columns = (*(column for column, _ in binned), *(words(name, ("0", "1")) for name in names))
    codes = np.concatenate([np.stack([codes for _, codes in binned], axis=1), bits], axis=1)
    return Coded(columns, codes.astype(np.uint8))


def _equal_width(name: str, numbers: np.ndarray) -> tuple[Column, np.ndarray]:
    """Ten bins between min and max + 1, each named by its edges."""
    edges = np.linspace(numbers.min(), int(numbers.max()) + 1, _BINS + 1)
    labels = (f"[{low:g}, {high:g})" for low, high in pairwise(edges))
    return words(name, labels), np.digitize(numbers, edges) - 1


# US Census 1990: small integers


def census_from_raw(text: bytes) -> Coded:
    """A header row, then caseid and 68 small integers; the values of a column are its categories."""
    names = text[: text.index(b"\n")].decode("ascii").strip().split(",")
    values = _integers(text, columns=len(names), header=1)[:, 1:]
    codes, columns = np.empty(values.shape, dtype=np.uint8), []
    for n, name in enumerate(names[1:]):
        kinds = np.unique(values[:, n])
        codes[:, n] = np.searchsorted(kinds, values[:, n])
        columns.append(words(name, kinds))
    return Coded(tuple(columns), codes)


def census_from_compact(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Coded:
    """Item numbers stand for values; the names of the attributes are not known."""
    columns = (words(f"attribute{c['position']}", c["items"]) for c in description["columns"])
    return Coded(tuple(columns), arrays["X"])


def _integers(text: bytes, columns: int, header: int = 0) -> np.ndarray:
    """Comma-separated integers, (rows, columns)."""
    values = np.loadtxt(io.BytesIO(text), dtype=np.int32, delimiter=",", skiprows=header, ndmin=2)
    if values.shape[1] != columns:
        raise ValueError(f"got {values.shape[1]} columns of numbers; expected {columns}")
    return values
