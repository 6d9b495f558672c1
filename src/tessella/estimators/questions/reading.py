"""Rows of which some values are not known."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tessella.data import Column, Encoding
from tessella.data.tables.values import Value
from tessella.estimators import frames


class KnownRows(NamedTuple):
    """Rows, with anything in place of what is not known."""

    rows: Tensor
    """(B, G + R)."""
    unknown: Tensor
    """Whether each of the columns of the table is unknown, (B, columns)."""
    values: list[list[Value]]
    """Of the columns, as they came; None where there is none."""


def read_rows(
    encoding: Encoding, layout: frames.Layout, X: Any, unseen: str, evidence: bool, ignored: int | None = None
) -> KnownRows:
    """A frame, which need not have all columns, as rows.

    Args:
        encoding, layout: of the fitted table.
        X: the frame.
        unseen: see `Encoding.encode`.
        evidence: a value that is missing where training saw missing values is known to be missing; otherwise nothing
            that is missing is known.
        ignored: a column whose values make no difference.
    """
    frame = frames.read(X)
    frames.check_rows(frame, least=1)
    found = frames.matched_some(frame, layout)
    if ignored is not None:
        found[ignored] = None
    values = [column or [None] * frame.rows for column in found]
    gone = np.array([[value is None for value in column] for column in values]).reshape(len(values), frame.rows)
    if evidence:
        there = [column is not None and spec.missing for spec, column in zip(encoding.columns, found, strict=True)]
        gone &= ~np.array(there)[:, None]
    filled = [
        [anything if unknown else value for value, unknown in zip(column, mask.tolist(), strict=True)]
        for column, mask, anything in zip(values, gone, map(_anything, encoding.columns), strict=True)
    ]
    return KnownRows(encoding.join(*encoding.encode(filled, unseen)), torch.from_numpy(gone.T.copy()), values)


def _anything(column: Column) -> Value:
    """A value that the column has."""
    return column.decode(np.array([column.low]))[0] if column.number else column.categories[0]
