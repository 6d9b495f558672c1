"""Exact models of mixed tables, described: one network for every order of the columns."""

from dataclasses import dataclass, field, replace

from tessella.contracts import Batch
from tessella.data.tables.bins import BINS, NumberDistribution
from tessella.data.tables.columns import Column
from tessella.data.tables.shape import TableShape
from tessella.densities import Autoregressive
from tessella.models.any_order import AutoregressiveTable
from tessella.models.backoff import BackoffTable
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
    natural: float = 0.5
    """Share of the training rows that are learned in the table's own order."""
    given: float = 0.5
    """Share of those that are learned with some columns first, then one that is asked about, and else in the table's
    order, which is all that questions ask for. Others are learned in any order, at the expense of a short training.
    """
    orders: int = 1
    """Orders that a likelihood is the mean of."""
    bins: int = 64
    """Of a number, at most."""
    groups: int = 48
    """Of the parts of a number, about: what the network learns about parts it learns about groups, see `PartGroups`."""
    components: int = 0
    """Of a mixture of categoricals that the network corrects, which learns much from few rows; 0 for none."""
    sizes: tuple[tuple[int, int, int], ...] = ()
    """Bins, atoms and groups of each number: what `start` found in the rows."""
    order: tuple[int, ...] = ()
    """Of the columns of the density, which are categories and then numbers: the table's own. None: as they are."""
    fast: bool = True
    """On a GPU, attention multiplies in bfloat16 and trains with fused kernels."""

    def build(self, shape: TableShape) -> AutoregressiveTable:
        if len(self.sizes) != shape.numbers:
            raise ValueError(
                f"sizes: got {len(self.sizes)}, which leaves them to the rows; expected those that `start` found for "
                f"{shape.numbers} numbers"
            )
        density = Autoregressive(shape, self.sizes, self.width, self.layers, self.dropout, self.fast, self.components)
        return AutoregressiveTable(density, self.natural, self.given, self.orders, self.order)

    def start(self, shape: TableShape, train: Batch, validation: Batch, options: StartOptions | None = None) -> Started:
        """Independent columns, or components around them; bins and atoms of numbers as validation rows like them."""
        found = number_distributions(shape, train, validation, self.bins)
        groups = [one.grouped(self.groups) for one in found]
        pairs = zip(found, groups, strict=True)
        sizes = tuple((one.bins.bins, len(one.bins.atoms), int(group.max()) + 1) for one, group in pairs)
        config = replace(self, sizes=sizes)
        model = config.build(shape)
        model.density.arrange(found, groups)
        model.start(*train)
        return Started(model, config, "components at random" if self.components else "independent columns")


@dataclass(frozen=True)
class BackoffConfig(TableConfig, kind="backoff"):
    """`BackoffTable`: how often a row came, and a network for the rest; exact, categories."""

    network: AutoregressiveConfig = field(default_factory=AutoregressiveConfig)
    """Of rows that counts know nothing about."""
    own: float = 0.5
    """Share of the training objective that is the network's own likelihood."""
    rows: int = 0
    """Different training rows: what `start` found."""

    def build(self, shape: TableShape) -> BackoffTable:
        if self.rows < 1:
            raise ValueError(f"rows: got {self.rows}, which leaves them to the rows; expected those that `start` found")
        return BackoffTable(self.network.build(shape), self.rows, self.own)

    def start(self, shape: TableShape, train: Batch, validation: Batch, options: StartOptions | None = None) -> Started:
        """The counts of the training rows; of the network, independent columns."""
        started = self.network.start(shape, train, validation, options)
        assert isinstance(started.model, AutoregressiveTable)
        model = BackoffTable(started.model, 1, self.own)
        model.start(*train)
        return Started(model, replace(self, rows=len(model.seen)), f"counts of rows, and {started.start}")


def number_distributions(shape: TableShape, train: Batch, validation: Batch, most: int) -> list[NumberDistribution]:
    """Of each number of a table, of the values that are there, with at most so many bins."""
    choices = [bins for bins in BINS if bins <= most] or [most]
    found = []
    for j, indicator in enumerate(shape.indicators):
        learned, watched = (
            numbers[:, j] if indicator < 0 else numbers[codes[:, indicator] == 1, j]
            for codes, numbers in ((batch[0].cpu(), batch[1].cpu()) for batch in (train, validation))
        )
        low, high = (float(learned.min()), float(learned.max())) if len(learned) else (0.0, 1.0)
        column = Column(f"number {j}", "count" if shape.whole[j] else "continuous", low=low, high=max(high, low + 1))
        found.append(NumberDistribution.of(column, learned.contiguous(), watched.contiguous(), choices))
    return found
