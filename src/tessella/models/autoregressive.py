"""Exact models of mixed tables, described: one network for every order of the columns."""

from dataclasses import dataclass, replace

from tessella.contracts import Batch
from tessella.data.tables.bins import BINS, NumberBins, NumberDistribution
from tessella.data.tables.columns import Column
from tessella.data.tables.shape import TableShape
from tessella.densities import Autoregressive
from tessella.models.any_order import AutoregressiveTable
from tessella.models.tables import Started, StartOptions, TableConfig


@dataclass(frozen=True)
class AutoregressiveConfig(TableConfig, kind="autoregressive"):
    """`AutoregressiveTable`: exact, categories and numbers, any order."""

    width: int = 128
    """Of the residual stream."""
    layers: int = 3
    """Attention layers."""
    dropout: float = 0.1
    """Share that is left out in training; more for small tables."""
    natural: float = 0.25
    """Share of the training rows that are learned in the table's own order."""
    orders: int = 1
    """Orders that a likelihood is the mean of."""
    bins: int = 64
    """Of a number, at most."""
    sizes: tuple[tuple[int, int], ...] = ()
    """Bins and atoms of each number: what `start` found in the rows."""
    fast: bool = True
    """On a GPU, attention multiplies in bfloat16 and trains with fused kernels."""

    def build(self, shape: TableShape) -> AutoregressiveTable:
        if len(self.sizes) != shape.numbers:
            raise ValueError(
                f"sizes: got {len(self.sizes)}, which leaves them to the rows; expected those that `start` found for "
                f"{shape.numbers} numbers"
            )
        density = Autoregressive(shape, self.sizes, self.width, self.layers, self.dropout, self.fast)
        return AutoregressiveTable(density, self.natural, self.orders)

    def start(self, shape: TableShape, train: Batch, validation: Batch, options: StartOptions | None = None) -> Started:
        """Independent columns; the bins and atoms of each number those that the validation rows like best."""
        found = number_bins(shape, train, validation, self.bins)
        config = replace(self, sizes=tuple((column.bins, len(column.atoms)) for column in found))
        model = config.build(shape)
        if model.density.numbers is not None:
            model.density.numbers.arrange(found)
        model.start(*train)
        return Started(model, config, "independent columns")


def number_bins(shape: TableShape, train: Batch, validation: Batch, most: int) -> list[NumberBins]:
    """Bins, at most so many, and atoms of each number of a table, of the values that are there."""
    choices = [bins for bins in BINS if bins <= most] or [most]
    found = []
    for j, indicator in enumerate(shape.indicators):
        learned, watched = (
            numbers[:, j] if indicator < 0 else numbers[codes[:, indicator] == 1, j]
            for codes, numbers in ((batch[0].cpu(), batch[1].cpu()) for batch in (train, validation))
        )
        low, high = (float(learned.min()), float(learned.max())) if len(learned) else (0.0, 1.0)
        column = Column(f"number {j}", "count" if shape.whole[j] else "continuous", low=low, high=max(high, low + 1))
        found.append(NumberDistribution.of(column, learned.contiguous(), watched.contiguous(), choices).bins)
    return found
