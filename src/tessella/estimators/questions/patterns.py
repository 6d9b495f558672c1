"""Rows in which the same columns are unknown are asked together."""

from collections.abc import Iterator

from torch import Tensor

from tessella.data import Encoding
from tessella.estimators.questions.walks import variable


def by_pattern(unknown: Tensor) -> Iterator[tuple[Tensor, list[int]]]:
    """Rows with the same pattern of unknown columns, (B, columns): their places, and these columns."""
    patterns, member = unknown.unique(dim=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        yield (member == i).nonzero()[:, 0], pattern.nonzero()[:, 0].tolist()


def known_besides(encoding: Encoding, columns: list[int]) -> list[int]:
    """The columns of a model that are none of these columns of the table."""
    gone = {variable(encoding, column) for column in columns if encoding.tokens(column)}
    return [column for column in range(len(encoding.variables)) if column not in gone]
