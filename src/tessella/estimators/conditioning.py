"""Rows given the values of some columns.

Where the model has exact conditionals, what is known comes first, and nothing has to be weighed unless several columns
are limited to intervals. Else three ways, the first that is feasible. Rows are drawn and those that meet the conditions
are kept, which is exact. Where they are too few, or a number is given to a flow, the others are found by importance
resampling, and the kept ones tell whether that can be believed: the mean weight and the share of rows that were kept
estimate the same probability. Weights that miss what is compatible with a rare condition are all equally tiny, and look
healthy by themselves; their mean is then far below that share.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Protocol

import torch
from torch import Tensor

from tessella.data import Encoding
from tessella.estimators.coding import CodedRows
from tessella.estimators.marginals import Marginals
from tessella.estimators.network import Model
from tessella.estimators.questions.given import Given
from tessella.estimators.questions.walks import (
    Exact,
    answers,
    completed,
    drawn,
    exact,
    home,
    in_order,
    pieces,
    told,
    variable,
)
from tessella.models import SemiDiscrete

MOST_DRAWS = 40_000  # before rejection gives up; or 20 for every row asked for
AT_ONCE = 2000  # or as many as are asked for
PROPOSALS = 4000  # of importance resampling; or 4 for every row asked for
SAMPLES = 16  # of the bound in its weights
FEWEST = 10  # draws that meet the conditions, or come near; from fewer nothing can be said
NEAR = 0.25  # of a number, on the scale on which its column is about standard normal
LEAST = 1e-9  # probability of an interval or of some categories; what is rarer was never seen
SHORT, NEARLY_SHORT = 0.75, 0.3  # of the share of such draws the mean weight may be: exactly met, or only nearly


Values = Mapping[int, list[float]]


@dataclass(frozen=True)
class Conditioned:
    """Rows (n, G + R), and how many independent ones they are worth."""

    rows: Tensor
    effective_sample_size: float


@torch.no_grad()
def sample_given(model: Model, encoding: Encoding, given: Given, count: int, temperature: float = 1.0) -> Conditioned:
    """Rows that meet what is given; an error where that is too rare for an answer that can be trusted.

    Args:
        model: to draw from.
        encoding: of its columns.
        given: values of columns, and limits where the model has exact conditionals.
        count: number of rows.
        temperature: T of p^(1/T) of the parts of each column drawn; not 1 where the model has exact conditionals.
    """
    if answers(model):
        return _asked(AskedConditions(model, encoding, given, temperature), count)
    if given.limits or temperature != 1:
        exact(model, "given: an interval or a list of values" if given.limits else "temperature")
    if isinstance(model, CodedRows):
        return _conditioned(CodedConditions(model, given.values), count)
    assert isinstance(model, SemiDiscrete)
    return _conditioned(FlowConditions(model, encoding, given.values), count)


def _asked(conditions: "AskedConditions", count: int) -> Conditioned:
    """Without weights where there is one limit at most: what is known is the same for all rows, and so is P(limit)."""
    if len(conditions.limits) > 1:
        found = _conditioned(conditions, count)
        return Conditioned(conditions.completed(found.rows), found.effective_sample_size)
    return Conditioned(conditions.completed(conditions.proposals(count)[0]), float(count))


class Conditions(Protocol):
    """What is given, in terms of a model."""

    exactly: bool
    """Whether draws can meet it, or, with a flow's real numbers, only come near."""
    volume: float
    """Of what counts as near, in units of the density; 1 where draws meet it."""

    def draws(self, count: int) -> Tensor:
        """Those of so many rows drawn from the model that meet it."""

    def proposals(self, count: int) -> tuple[Tensor, Tensor]:
        """So many rows that meet it, (count, G + R), and log w, (count): the mean of w is P(given)."""


class AskedConditions:
    """A model with exact conditionals given values and limits: the columns with values first, limited ones after them.

    A limited column is drawn from its conditional inside its limit L_i. Rows so drawn are distributed as

        p(x | values, limits) / w(x) up to a factor,    w = prod_(i > 1) P(L_i | values, x_1, ..., x_(i - 1)),

    so each is kept with probability w <= 1, and those that are kept are exact; P(L_1 | values) is the same for all.
    The columns that nothing is said about are drawn when the rows are chosen.
    """

    exactly, volume = True, 1.0

    def __init__(self, model: Exact, encoding: Encoding, given: Given, temperature: float = 1.0):
        self.model, self.encoding, self.temperature = model, encoding, temperature
        self.known = [variable(encoding, column) for column in given.values]
        self.limits = {variable(encoding, column): limit.to(home(model)) for column, limit in given.limits.items()}
        self.row = torch.zeros(1, encoding.shape.variables, dtype=torch.float64)
        for column, values in given.values.items():
            self.row[0, encoding.tokens(column)] = torch.tensor(values, dtype=torch.float64)

    def draws(self, count: int) -> Tensor:
        rows, log_weight = self.proposals(count)
        return rows[torch.rand(len(rows)).log() < log_weight]

    def proposals(self, count: int) -> tuple[Tensor, Tensor]:
        rows = self.row.repeat(count, 1)
        if not self.limits:
            return rows, torch.zeros(count)
        found, weights = [], []
        for piece in pieces(self.encoding.split(rows)):
            walk = told(self.model, piece, self.known)
            masses = drawn(walk, in_order(self.model, self.limits), self.limits, self.temperature).double().cpu()
            _check_possible(float(masses[0, 0].exp()))
            found.append(self.encoding.join(*walk.batch).cpu())
            weights.append(masses[1:].sum(0))
        return torch.cat(found), torch.cat(weights)

    def completed(self, rows: Tensor) -> Tensor:
        """Rows (B, G + R) with the other columns drawn, too."""
        return completed(self.model, self.encoding, rows, [*self.known, *self.limits], self.temperature)


def _check_possible(probability: float) -> None:
    if probability < LEAST:
        raise ValueError(f"given: impossible for the model, its probability is {probability:.1g}")


class CodedConditions:
    """A model of codes given the codes of some columns; numbers are then put in place of those drawn in their codes."""

    exactly, volume = True, 1.0

    def __init__(self, model: CodedRows, given: Values):
        self.model, self.given, self.codes = model, given, model.codes_of(given)

    def draws(self, count: int) -> Tensor:
        (codes,) = self.model.model.sample(count)
        asked = torch.tensor(list(self.codes.values()), device=codes.device)
        return self.model.rows_of(codes[(codes[:, list(self.codes)] == asked).all(1)], self.given)

    def proposals(self, count: int) -> tuple[Tensor, Tensor]:
        codes, log_weight = self.model.model.propose(count, self.codes)
        return self.model.rows_of(codes, self.given), log_weight.double().cpu()


class FlowConditions:
    """A flow given some columns. Draws have to agree in categories and to come near in numbers.

    To propose, rows r = (a', b) of the given columns and the others are drawn, the given values a put in the place of
    a', and weighed by

        w = P(a, b) f(a') / P(a', b),    f the product of the columns' marginals.

    P is the model's bound, so this is as exact as the bound is tight.
    """

    def __init__(self, model: SemiDiscrete, encoding: Encoding, given: Values):
        self.model, self.encoding, self.given, self.first = model, encoding, given, len(encoding.counts)
        self.row = torch.zeros(1, encoding.shape.variables, dtype=torch.float64, device=model.device)
        for column, values in given.items():
            self.row[0, encoding.tokens(column)] = torch.tensor(values).to(self.row)
        tokens = [encoding.tokens(column) for column in given]
        self.categories = [place for places in tokens for place in places if place < self.first]
        # A number that is missing, or an atom, is said by its indicator alone.
        self.numbers = [
            places[-1] - self.first
            for places in tokens
            if places[-1] >= self.first and (len(places) == 1 or self.row[0, places[0]] == 1)
        ]
        self.exactly, self.volume = not self.numbers, self._volume()

    def draws(self, count: int) -> Tensor:
        rows = self.encoding.join(*self.model.sample(count))
        met = (rows[:, self.categories] == self.row[:, self.categories]).all(1)
        if self.numbers:
            apart = (self._images(rows)[0] - self._images(self.row)[0]).abs()
            met &= (apart < NEAR).all(1)
        return rows[met].cpu()

    def proposals(self, count: int) -> tuple[Tensor, Tensor]:
        marginals = Marginals(self.model, self.encoding)
        rows = self.encoding.join(*self.model.sample(count))
        clamped = rows.clone()
        log_weight = -self._log_prob(rows)
        for column in self.given:
            log_weight += marginals.log_prob(column, rows)
            places = self.encoding.tokens(column)
            clamped[:, places] = self.row[:, places]
        log_weight += self._log_prob(clamped)
        return clamped.cpu(), log_weight.cpu()

    def _log_prob(self, rows: Tensor) -> Tensor:
        return self.model.log_prob(*self.encoding.split(rows), samples=SAMPLES).double()

    def _volume(self) -> float:
        """An interval's length for a real number; how many integers there are in it for others."""
        if not self.numbers:
            return 1.0
        length = 2 * NEAR / self._images(self.row)[1][0].exp()
        discrete = torch.tensor(self.encoding.whole, device=length.device)[self.numbers]
        return float(torch.where(discrete, length.clamp_min(1), length).prod())

    def _images(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The given numbers on the scale on which they are about standard normal, and log-derivatives: (B, n)."""
        assert self.model.dequantizer.numbers is not None
        parts = self.model.dequantizer.numbers.scale.forward_and_ladj(rows[:, self.first :])
        return parts[0][:, self.numbers], parts[1][:, self.numbers]


def _conditioned(conditions: Conditions, count: int) -> Conditioned:
    kept, drawn = _draw(conditions, count)
    if conditions.exactly and len(kept) >= count:
        return Conditioned(kept[:count], float(count))
    rows, log_weight = conditions.proposals(max(PROPOSALS, 4 * count))
    if len(kept) >= FEWEST and _supported(log_weight, len(kept) / drawn / conditions.volume, conditions.exactly):
        weight = log_weight.softmax(0)
        kept = kept if conditions.exactly else kept[:0]
        chosen = torch.multinomial(weight, count - len(kept), replacement=True)
        worth = len(kept) + float(1 / weight.square().sum())
        return Conditioned(torch.cat([kept, rows[chosen]]), min(worth, float(count)))
    if len(kept) >= FEWEST and conditions.exactly:
        again = kept[torch.randint(len(kept), (count - len(kept),))]
        return Conditioned(torch.cat([kept, again]), float(len(kept)))
    raise ValueError(_too_rare(len(kept), drawn, "meet" if conditions.exactly else "come near"))


def _draw(conditions: Conditions, count: int) -> tuple[Tensor, int]:
    """Draws that meet the conditions, until there are `count` or it takes too long; of how many."""
    most, size = max(MOST_DRAWS, 20 * count), max(AT_ONCE, count)
    found: list[Tensor] = []
    while len(found) * size < most and sum(map(len, found)) < count:
        found.append(conditions.draws(size))
    return torch.cat(found), len(found) * size


def _supported(log_weight: Tensor, share: float, exactly: bool) -> bool:
    """Whether the mean weight, an estimate of P(given), reaches the share of draws that met the conditions."""
    mean = float((log_weight.logsumexp(0) - log(len(log_weight))).exp())
    return mean >= (SHORT if exactly else NEARLY_SHORT) * share


def _too_rare(found: int, drawn: int, what: str) -> str:
    rate = f"about 1 in {drawn // found:,}" if found else f"fewer than 1 in {drawn // 3:,}"
    return (
        f"given: too rare to answer, {rate}: {found} of {drawn:,} rows that the model drew {what} them, and "
        "weighing rows does not make up for that; give fewer columns, or more frequent values"
    )
