"""Rows given the values of some columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tessella.estimators.columns import Column
from tessella.estimators.encoding import Encoding
from tessella.estimators.frames import plain_value
from tessella.estimators.marginals import Marginals
from tessella.estimators.values import Value, shown
from tessella.models import SemiDiscrete

MOST_DRAWS = 20_000  # before rejection gives up; or 20 for every row asked for
PROPOSALS = 4000  # of sampling-importance-resampling; or 4 for every row asked for
SAMPLES = 16  # of the bound in its weights


@dataclass(frozen=True)
class Conditioned:
    """Rows (n, G + R), and how many independent ones they are worth."""

    rows: Tensor
    effective_sample_size: float


def given_values(encoding: Encoding, conditions: Mapping[str, Any]) -> dict[int, list[float]]:
    """Conditions as they stand in a row, by column; those on columns with a single value are met anyway."""
    given: dict[int, list[float]] = {}
    for name, value in conditions.items():
        index = encoding.index(name)
        code, tokens = _possible(encoding.columns[index], plain_value(value)), encoding.tokens(index)
        present = [float(not np.isnan(code))] if len(tokens) > 1 else []
        given |= {index: [*present, float(np.nan_to_num(code))]} if tokens else {}
    return given


def _possible(column: Column, value: Value) -> float:
    """The code or number of a value that the model can make."""
    try:
        code = float(column.encode([value], "error")[0])
    except (TypeError, ValueError) as error:
        raise ValueError(f"conditions: impossible, the model never makes such a row: {error}") from None
    if column.number and (code < column.low or code > column.high):
        bounds = shown(column.decode(np.array([column.low, column.high])))
        raise ValueError(
            f"conditions: column {column.name!r}: {shown([value])} is impossible, training saw values between {bounds}"
        )
    return code


@torch.no_grad()
def sample_given(model: SemiDiscrete, encoding: Encoding, given: Mapping[int, list[float]], count: int) -> Conditioned:
    """Rows whose columns have given values.

    Where the given columns are all categories, rows are drawn until enough of them agree, which is exact. If too few
    do, or a number is given, sampling-importance-resampling: draw rows r = (a', b) of the given columns and the others,
    put the given values a in the place of a', weigh by

        w = P(a, b) f(a') / P(a', b),    f the product of the columns' marginals,

    and resample. The mean of w is P(a), whatever f is; P is the model's bound, so this is as exact as the bound is
    tight and the number of proposals large. The effective sample size is (sum w)^2 / sum w^2.

    Args:
        model: to draw from.
        encoding: of its columns.
        given: column -> its values as they stand in a row, one for each token of the column.
        count: number of rows.
    """
    places = [place for column in given for place in encoding.tokens(column)]
    if all(place < len(encoding.counts) for place in places):
        values = torch.tensor([value for part in given.values() for value in part], dtype=torch.float64)
        agreeing = _agreeing(model, places, values, count)
        if len(agreeing) == count:
            return Conditioned(agreeing, float(count))
    return _resampled(model, encoding, given, count)


def _agreeing(model: SemiDiscrete, places: list[int], values: Tensor, count: int) -> Tensor:
    """Up to `count` draws that have these values at these places."""
    found: list[Tensor] = []
    most = max(MOST_DRAWS, 20 * count)
    batch = max(2000, count)
    for _ in range(0, most, batch):
        rows = model.sample(batch)
        found.append(rows[(rows[:, places] == values.to(rows)).all(1)])
        if sum(map(len, found)) >= count:
            break
    return torch.cat(found)[:count]


def _resampled(model: SemiDiscrete, encoding: Encoding, given: Mapping[int, list[float]], count: int) -> Conditioned:
    marginals = Marginals(model, encoding)
    rows = model.sample(max(PROPOSALS, 4 * count))
    clamped = rows.clone()
    log_weight = -model.log_prob(rows, SAMPLES).double()
    for column, values in given.items():
        log_weight += marginals.log_prob(column, rows)
        clamped[:, encoding.tokens(column)] = torch.tensor(values).to(rows)
    log_weight += model.log_prob(clamped, SAMPLES).double()
    weight = (log_weight - log_weight.max()).exp().cpu()
    chosen = torch.multinomial(weight, count, replacement=True)
    return Conditioned(clamped.cpu()[chosen], float(weight.sum() ** 2 / weight.square().sum()))
