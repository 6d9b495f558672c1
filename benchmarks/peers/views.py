"""How metrics see a table: numbers, or few codes, by what the training rows say of each column."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FREQUENT = 200  # categories that a classifier tells from each other; it takes 255 at most
CODES = 30  # of a category, where dependence is measured
QUANTILES = 20  # of a number, there


@dataclass(frozen=True)
class ColumnView:
    """A column, and what its values in the training rows are."""

    name: str
    train: pa.ChunkedArray

    @cached_property
    def numeric(self) -> bool:
        """Whether it holds numbers or dates."""
        return is_numeric(self.train)

    @cached_property
    def categories(self) -> pa.StructArray:
        """Values and how often they occur, the most frequent first."""
        counted = words(self.train).drop_null().value_counts()
        order = np.lexsort((counted.field("values").to_numpy(False), -counted.field("counts").to_numpy()))
        return counted.take(order)

    @cached_property
    def edges(self) -> np.ndarray:
        """Between quantiles."""
        values = numbers(self.train)
        return np.unique(np.nanquantile(values, np.linspace(0, 1, QUANTILES + 1)[1:-1], method="lower"))

    @cached_property
    def categorical(self) -> list[bool]:
        """Which of its features are categories."""
        return [not self.numeric] + [False] * self._many

    def features(self, column: pa.ChunkedArray) -> list[np.ndarray]:
        """For trees, NaN where missing: the number; or the rank of the category, and how frequent it is if there
        are many.

        The last of the ranks is for all rare categories and those that never occur in training.
        """
        if self.numeric:
            return [numbers(column)]
        ranks = self._ranks(column)
        return [np.minimum(ranks, FREQUENT)] + [self._frequencies(ranks)] * self._many

    def codes(self, column: pa.ChunkedArray) -> np.ndarray:
        """0 where missing, else the place among quantiles or the rank of the category, of which the rare are one."""
        if self.numeric:
            values = numbers(column)
            place = np.searchsorted(self.edges, values, side="left").astype(float)
        else:
            values = place = np.minimum(self._ranks(column), CODES)
        return np.where(np.isnan(values), 0, place + 1).astype(np.int64)

    @cached_property
    def _many(self) -> bool:
        return not self.numeric and len(self.categories) > FREQUENT

    def _frequencies(self, ranks: np.ndarray) -> np.ndarray:
        """log(1 + count in training), NaN where missing."""
        counts = np.append(self.categories.field("counts").to_numpy(), 0)
        return np.where(np.isnan(ranks), np.nan, np.log1p(counts[np.nan_to_num(ranks).astype(int)]))

    def _ranks(self, column: pa.ChunkedArray) -> np.ndarray:
        """0 for the most frequent category; one past the last for an unknown one; NaN where missing."""
        values = words(column)
        ranks = pc.fill_null(pc.index_in(values, self.categories.field("values")), len(self.categories))
        return np.where(values.is_null().to_numpy(), np.nan, ranks.to_numpy())


class TableView:
    """All columns of a table as metrics see them.

    Args:
        train: the rows that methods learn from; all tables seen have its columns.
    """

    def __init__(self, train: pa.Table):
        self.columns = {name: ColumnView(name, train[name]) for name in train.column_names}

    def features(self, table: pa.Table, without: str | None = None) -> np.ndarray:
        """(B, F) for trees; without a column that they are to predict."""
        columns = (view.features(table[name]) for name, view in self.columns.items() if name != without)
        return np.stack([feature for features in columns for feature in features], axis=1)

    def categorical(self, without: str | None = None) -> np.ndarray:
        """Which of the features are categories, (F)."""
        views = (view for name, view in self.columns.items() if name != without)
        return np.array([flag for view in views for flag in view.categorical])

    def codes(self, table: pa.Table) -> np.ndarray:
        """(B, C), small integers."""
        return np.stack([view.codes(table[name]) for name, view in self.columns.items()], axis=1)


def is_numeric(column: pa.ChunkedArray) -> bool:
    """Whether it holds numbers or dates, rather than categories."""
    kind = column.type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """As double precision, NaN where missing; dates as microseconds, which are whole there."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return np.asarray(column.cast(pa.float64()))


def words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """As text."""
    return column.cast(pa.string())
