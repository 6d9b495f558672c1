"""What questions ask of a model: one column after another, in an order of their own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeGuard

import torch
from torch import Tensor

from tessella.baselines import CategoricalMixture
from tessella.contracts import Batch
from tessella.data import Encoding
from tessella.data.tables.limits import Limit
from tessella.densities.walking import RowWalk
from tessella.estimators.coding import CodedRows
from tessella.estimators.network import Model
from tessella.estimators.questions.mixture_walk import MixtureWalk
from tessella.models import AutoregressiveTable
from tessella.nets.ragged import draw
from tessella.progress import counted

ROWS_AT_ONCE = 2000

Exact = AutoregressiveTable | CodedRows
"""Models that `exact` lets through: an autoregressive density, a mixture of categoricals."""


class Walk(Protocol):
    """p(x_j | those told before j) by its parts, for rows whose columns become known one after another."""

    @property
    def batch(self) -> Batch:
        """The rows as they are now."""

    def ask(self, column: int) -> Tensor:
        """log P of every part of a column, (B, K)."""

    def tell(self, column: int) -> None:
        """What the rows say about the column that was asked for."""

    def know(self, column: int) -> None:
        """What the rows say about a column that nobody has to be asked about."""

    def log_prob(self, column: int) -> Tensor:
        """log p of what the rows say about the column that was asked for, (B)."""

    def excess(self, column: int) -> Tensor:
        """How much more that surprises than values of the column do on average, (B); see `excess_surprise`."""

    def within(self, column: int, limit: Limit) -> Tensor:
        """log of the share of every part that meets a limit, (B, K) or, where it is the same for all rows, (1, K)."""

    def draw(self, column: int, part: Tensor, limit: Limit | None = None) -> None:
        """Write a value of these parts (B) of the column that was asked for into the rows, inside a limit."""

    def put(self, tokens: Sequence[int], values: Tensor) -> None:
        """Write a column into the rows as it stands there, (B, tokens)."""


def answers(model: Model) -> TypeGuard[Exact]:
    """Whether a model has exact conditionals of every column given any others."""
    return isinstance(model, AutoregressiveTable) or (
        isinstance(model, CodedRows) and isinstance(model.model, CategoricalMixture)
    )


def exact(model: Model, what: str) -> Exact:
    """The model, if it can answer; an error that says which can, if not."""
    if not answers(model):
        raise ValueError(
            f"{what}: this density has no exact conditionals of columns given any others; "
            'fit with density="autoregressive", or "auto"'
        )
    return model


def walk(model: Exact, batch: Batch) -> Walk:
    """Through these rows."""
    if isinstance(model, AutoregressiveTable):
        return RowWalk(model.density, *(part.to(model.device) for part in batch))
    return MixtureWalk(model, *batch)


def home(model: Exact) -> torch.device:
    """Where its walks are; mixtures walk on the CPU."""
    return model.device if isinstance(model, AutoregressiveTable) else torch.device("cpu")


def variable(encoding: Encoding, column: int) -> int:
    """Which of a model's columns is that of a table's, which has more than one value: categories, then numbers."""
    return encoding.variables.index(column)


def in_order(model: Exact, columns: Iterable[int]) -> list[int]:
    """Columns of a model, those first that others are asked about given them; to a mixture it makes no difference."""
    return model.in_order(columns) if isinstance(model, AutoregressiveTable) else sorted(columns)


def pieces(batch: Batch) -> Iterator[Batch]:
    """A few rows at a time."""
    return zip(*(part.split(ROWS_AT_ONCE) for part in batch), strict=True)


def completed(model: Exact, encoding: Encoding, rows: Tensor, known: Sequence[int], temperature: float = 1.0) -> Tensor:
    """Rows (B, G + R) whose known columns stay and the others are drawn, counted for whoever watches."""
    batch = encoding.split(rows)
    if isinstance(model, AutoregressiveTable) and temperature == 1:
        return encoding.join(*model.complete(*(part.to(model.device) for part in batch), known=known)).cpu()
    rest, found = in_order(model, set(range(len(encoding.variables))).difference(known)), []
    for piece in counted(pieces(batch)):
        walked = told(model, piece, known)
        drawn(walked, rest, {}, temperature)
        found.append(encoding.join(*walked.batch).cpu())
    return torch.cat(found)


def told(model: Exact, batch: Batch, known: Sequence[int]) -> Walk:
    """A walk that has told the known columns, in the table's order."""
    started = walk(model, batch)
    for column in in_order(model, known):
        started.know(column)
    return started


def drawn(walked: Walk, columns: Sequence[int], limits: Mapping[int, Limit], temperature: float = 1.0) -> Tensor:
    """Draw columns one after another, each from p^(1/T) of its parts inside its limit.

    Returns:
        log P(limit | those before) of every limited column, in the order of the columns: (limits, B).
    """
    masses = []
    for column in columns:
        table, limit = walked.ask(column), limits.get(column)
        if temperature != 1:
            table = (table / temperature).log_softmax(-1)
        if limit is not None:
            table = table + walked.within(column, limit)
            masses.append(table.logsumexp(-1))
        walked.draw(column, parts_drawn(table), limit)
        walked.tell(column)
    return torch.stack(masses) if masses else torch.zeros(0, len(walked.batch[0]))


def parts_drawn(table: Tensor) -> Tensor:
    """A part for each row, P(k) ~ exp(table_k): (B, K) -> (B); any where a limit left nothing, which weighs 0."""
    return draw(table)
