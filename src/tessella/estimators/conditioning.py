"""Rows given the values of some columns.

Three ways, the first that is feasible. A mixture of categoricals is conditioned in closed form. Else rows are drawn and
those that meet the conditions are kept, which is exact. Where they are too few, or a number is given, the others are
found by importance resampling, and the kept ones tell whether that can be believed: the mean weight and the share of
rows that were kept estimate the same probability. Weights that miss what is compatible with a rare condition are all
equally tiny, and look healthy by themselves; their mean is then far below that share.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tessella.dequantizers.mixed import MixedDequantizer
from tessella.estimators.categorical import CategoricalRows
from tessella.estimators.columns import Column
from tessella.estimators.encoding import Encoding
from tessella.estimators.frames import plain_value
from tessella.estimators.marginals import Marginals
from tessella.estimators.network import Model
from tessella.estimators.values import Value, shown
from tessella.models import SemiDiscrete

MOST_DRAWS = 40_000  # before rejection gives up; or 20 for every row asked for
AT_ONCE = 2000  # or as many as are asked for
PROPOSALS = 4000  # of importance resampling; or 4 for every row asked for
SAMPLES = 16  # of the bound in its weights
FEWEST = 10  # draws that meet the conditions, or come near; from fewer nothing can be said
NEAR = 0.25  # of a number, on the scale on which its column is about standard normal
SHORT, NEARLY_SHORT = 0.75, 0.3  # of the share of such draws the mean weight may be: exactly met, or only nearly


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
        given |= {index: encoding.place(index, np.array([code]))[0].tolist()} if tokens else {}
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
def sample_given(model: Model, encoding: Encoding, given: Mapping[int, list[float]], count: int) -> Conditioned:
    """Rows whose columns have given values; an error where they are too rare for an answer that can be trusted.

    Args:
        model: to draw from.
        encoding: of its columns.
        given: column -> its values as they stand in a row, one for each token of the column.
        count: number of rows.
    """
    if isinstance(model, CategoricalRows) and model.conditions_exactly:
        rows, _ = model.propose(count, _by_place(encoding, given))
        return Conditioned(rows.cpu(), float(count))
    met = _draw(model, Conditions(model, encoding, given), count)
    if met.exactly and len(met.rows) == count:
        return Conditioned(met.rows, float(count))
    rows, log_weight = _proposals(model, encoding, given, max(PROPOSALS, 4 * count))
    if len(met.rows) >= FEWEST and _supported(log_weight, met):
        weight = log_weight.softmax(0).cpu()
        kept = met.rows if met.exactly else met.rows[:0]
        chosen = torch.multinomial(weight, count - len(kept), replacement=True)
        worth = len(kept) + float(1 / weight.square().sum())
        return Conditioned(torch.cat([kept, rows.cpu()[chosen]]), min(worth, float(count)))
    if met.exactly and len(met.rows) >= FEWEST:
        again = met.rows[torch.randint(len(met.rows), (count - len(met.rows),))]
        return Conditioned(torch.cat([met.rows, again]), float(len(met.rows)))
    raise ValueError(_too_rare(met))


class Conditions:
    """Which rows meet conditions, exactly in categories and nearly in numbers.

    Args:
        model, encoding, given: see `sample_given`.
    """

    def __init__(self, model: Model, encoding: Encoding, given: Mapping[int, list[float]]):
        self.model, self.first = model, len(encoding.counts)
        by_place = _by_place(encoding, given)
        self.categories = [place for place in by_place if place < self.first]
        # A number that is missing, or an atom, is said by its indicator alone.
        self.numbers = [
            tokens[-1] - self.first
            for column in given
            if (tokens := encoding.tokens(column))[-1] >= self.first and (len(tokens) == 1 or given[column][0] == 1)
        ]
        self.row = torch.zeros(1, self.first + len(encoding.numbers), dtype=torch.float64, device=model.device)
        for place, value in by_place.items():
            self.row[0, place] = value
        self.discrete = torch.tensor(encoding.unit, device=model.device)[self.numbers]

    def met(self, rows: Tensor) -> Tensor:
        """Whether each of the rows (B, G + R) meets them, (B)."""
        met = (rows[:, self.categories] == self.row[:, self.categories]).all(1)
        if self.numbers:
            apart = (self._images(rows)[0] - self._images(self.row)[0]).abs()
            met &= (apart < NEAR).all(1)
        return met

    def volume(self) -> float:
        """Of what counts as near: an interval's length for a real number, for others how many there are in it."""
        if not self.numbers:
            return 1.0
        length = 2 * NEAR / self._images(self.row)[1][0].exp()
        return float(torch.where(self.discrete, length.clamp_min(1), length).prod())

    def _images(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The given numbers on the scale on which they are about standard normal, and log-derivatives: (B, n)."""
        assert isinstance(self.model, SemiDiscrete)
        assert isinstance(self.model.dequantizer, MixedDequantizer)
        parts = self.model.dequantizer.scale.forward_and_ladj(rows[:, self.first :])
        return parts[0][:, self.numbers], parts[1][:, self.numbers]


@dataclass(frozen=True)
class Met:
    """Draws that meet conditions, in how many, and what share of a number's range counts as near."""

    rows: Tensor
    draws: int
    exactly: bool
    volume: float

    @property
    def share(self) -> float:
        """About the probability of the conditions: per unit, where numbers are given."""
        return len(self.rows) / self.draws / self.volume


def _draw(model: Model, conditions: Conditions, count: int) -> Met:
    """Draws that meet the conditions, until there are `count` or it takes too long."""
    most, size = max(MOST_DRAWS, 20 * count), max(AT_ONCE, count)
    found, drawn = [conditions.row[:0].cpu()], 0
    while drawn < most and sum(map(len, found)) < count:
        rows = model.sample(size)
        found.append(rows[conditions.met(rows)].cpu())
        drawn += size
    exactly = not conditions.numbers
    rows = torch.cat(found)
    return Met(rows[:count] if exactly else rows, drawn, exactly, conditions.volume())


def _proposals(model: Model, encoding: Encoding, given: Mapping[int, list[float]], count: int) -> tuple[Tensor, Tensor]:
    """Rows (count, G + R) that have the given values, and log w, whose mean of w is P(given).

    Of blocks of columns: see `BlockAutoregressiveMixture.propose`. Of a flow: draw rows r = (a', b) of the given
    columns and the others, put the given values a in the place of a', and weigh by

        w = P(a, b) f(a') / P(a', b),    f the product of the columns' marginals.

    P is the model's bound, so this is as exact as the bound is tight.
    """
    if isinstance(model, CategoricalRows):
        return model.propose(count, _by_place(encoding, given))
    marginals = Marginals(model, encoding)
    rows = model.sample(count)
    clamped = rows.clone()
    log_weight = -model.log_prob(rows, SAMPLES).double()
    for column, values in given.items():
        log_weight += marginals.log_prob(column, rows)
        clamped[:, encoding.tokens(column)] = torch.tensor(values).to(rows)
    return clamped, log_weight + model.log_prob(clamped, SAMPLES).double()


def _supported(log_weight: Tensor, met: Met) -> bool:
    """Whether the mean weight, an estimate of P(given), reaches the share of draws that met the conditions."""
    mean = float((log_weight.logsumexp(0) - log(len(log_weight))).exp())
    return mean >= (SHORT if met.exactly else NEARLY_SHORT) * met.share


def _too_rare(met: Met) -> str:
    found, near = len(met.rows), "meet" if met.exactly else "come near"
    rate = f"about 1 in {met.draws // found:,}" if found else f"fewer than 1 in {met.draws // 3:,}"
    return (
        f"conditions: too rare to answer, {rate}: {found} of {met.draws:,} rows that the model drew {near} them, and "
        "weighing rows does not make up for that; give fewer columns, or more frequent values"
    )


def _by_place(encoding: Encoding, given: Mapping[int, list[float]]) -> dict[int, float]:
    """The given values by their place in a row."""
    return {
        place: value
        for column, values in given.items()
        for place, value in zip(encoding.tokens(column), values, strict=True)
    }
