"""Rows of which some values are not known."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tessella.data import Column, Encoding
from tessella.data.tables.values import Value
from tessella.estimators import frames


def read_rows(
    encoding: Encoding, layout: frames.Layout, X: Any, unseen: str, evidence: bool, ignored: int | None = None
) -> tuple[Tensor, Tensor, list[list[Value]]]:
    """A frame, which need not have all columns, as rows, with anything in place of what is not known.

    Args:
        encoding, layout: of the fitted table.
        X: the frame.
        unseen: see `Encoding.encode`.
        evidence: a value that is missing where training saw missing values is known to be missing; otherwise nothing
            that is missing is known.
        ignored: a column whose values make no difference.

    Returns:
        Rows (B, G + R), whether each of their columns is unknown (B, columns), and the values, None where unknown.
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
    return encoding.join(*encoding.encode(filled, unseen)), torch.from_numpy(gone.T.copy()), values


def _anything(column: Column) -> Value:
    """A value that the column has."""
    return column.decode(np.array([column.low]))[0] if column.number else column.categories[0]
