"""What each column tells about each other one, under the model."""

from collections.abc import Sequence
from typing import TypedDict

import torch
from torch import Tensor

from tessella.data import Encoding
from tessella.estimators.network import Model
from tessella.estimators.questions import Exact, answers, told, variable
from tessella.models import AutoregressiveTable
from tessella.nets.ragged import entropy

ROWS = 256  # of the model's own, that an expectation is the mean over


class Telling(TypedDict):
    """Shares of what is uncertain about a column that others take away, from 0 to 1."""

    names: list[str]
    share: list[list[float]]
    """share[i][j] = I(i; j) / H(j): by column i alone about column j; 0 on the diagonal."""
    together: list[float]
    """1 - H(j | all others) / H(j)."""


@torch.no_grad()
def telling(model: Model, encoding: Encoding, rows: Tensor, names: Sequence[str]) -> Telling | None:
    """I(i; j) = E KL(p(x_j | x_i) || p(x_j)), exact but for the mean over x_i; of numbers, the parts are meant.

    Args:
        model: fitted; None is the answer where it has no exact conditionals given any columns.
        encoding: of its columns.
        rows: that the model drew, (B, G + R).
        names: of the columns to look at, none of which has a single value.
    """
    if not answers(model):
        return None
    some = rows[:ROWS]
    columns = [variable(encoding, encoding.index(name)) for name in names]
    every = range(len(encoding.variables))
    share, together = [], []
    for j in columns:
        alone = _table(model, encoding, some[:1], j, [])
        most = float(entropy(alone)) or 1.0
        found = [0.0 if i == j else _divergence(_table(model, encoding, some, j, [i]), alone) for i in columns]
        rest = _table(model, encoding, some, j, [i for i in every if i != j])
        share.append([min(1.0, one / most) for one in found])
        together.append(min(1.0, _divergence(rest, alone) / most))
    return Telling(names=list(names), share=list(map(list, zip(*share, strict=True))), together=together)


def _table(model: Exact, encoding: Encoding, rows: Tensor, column: int, known: list[int]) -> Tensor:
    """log P(part of a column | known columns), (B, K); of a network in one pass, where many are known."""
    if isinstance(model, AutoregressiveTable) and len(known) > 1:
        batch = (part.to(model.device) for part in encoding.split(rows))
        return model.conditional(*batch, column=column, known=known)[0].double().log().cpu()
    return told(model, encoding.split(rows), known).ask(column).double()


def _divergence(table: Tensor, alone: Tensor) -> float:
    """Mean of KL(P || P_alone) over the rows of log P, (B, K), with log P_alone (1, K)."""
    return max(0.0, float((table.exp() * (table - alone)).nan_to_num(0.0).sum(-1).mean()))
