"""How many kinds of baskets the validation baskets like: models that learn by counting."""

import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import torch

from tessella.baselines.sets import BasketMixture
from tessella.baselines.sets.counting import improve, independent, split
from tessella.data import PaddedSets, SetShape
from tessella.estimators.baskets.network import ModelKind
from tessella.progress import Progress
from tessella.training import StopReason
from tessella.training.randomness import derived_seed

PRIORS = (1.0, 4.0)
ROUNDS, MORE = 6, 30  # of each number of kinds, and of the best one at most
COMPONENTS = 256
BASKETS = 10  # of each kind, at least
WEIGHTS = 2**23  # of all kinds, at most: a hundred thousand items have 64 kinds


@dataclass
class Counted:
    """The model, and how it was found: mean -log P of the validation baskets in nats.

    Attributes:
        model: the best.
        independent: items that are independent given their number.
        prior: observations of each item in each kind that the best was given.
        validation: of the best.
        initial_validation: of independent items.
        rounds: of counting, in all.
        history: kinds, prior, validation value and seconds after each round.
        stopped: why no more was tried.
    """

    model: BasketMixture
    independent: BasketMixture
    validation: float
    initial_validation: float
    prior: float = 0.0
    rounds: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    stopped: StopReason = "steps"

    @property
    def kind(self) -> ModelKind:
        """What the model is."""
        return "independent" if self.model.components == 1 else "mixture"


class _OutOfTimeError(Exception):
    """The budget is spent."""


def count(
    train: PaddedSets,
    validation: PaddedSets,
    shape: SetShape,
    seed: int,
    max_components: int | None = None,
    time_budget: float | None = None,
    progress: bool = True,
) -> Counted:
    """Kinds of baskets are split in two as long as the validation baskets like it; then the best learns on.

    Args:
        train, validation: baskets.
        shape: of all.
        seed: of the splits.
        max_components: M at most.
        time_budget: in seconds; what is best by then is counted.
        progress: whether to show it.
    """
    began = time.monotonic()
    whole = independent(train, shape)
    at_first = _nll(whole, validation)
    counted = Counted(whole, whole, at_first, at_first)
    most = min(max_components or COMPONENTS, max(1, len(train) // BASKETS), max(1, WEIGHTS // shape.items))
    with Progress("rounds of counting", None, progress) as bar:
        try:
            for model, prior in _candidates(counted, train, most, seed):
                _judge(counted, model, prior, validation, time.monotonic() - began)
                bar.move(counted.rounds, f"{counted.model.components} kinds, validation {counted.validation:.3f} nats")
                if time_budget is not None and time.monotonic() - began > time_budget:
                    raise _OutOfTimeError
        except _OutOfTimeError:
            counted.stopped = "time_budget"
        except KeyboardInterrupt:
            counted.stopped = "interrupted"
    return counted


def _candidates(counted: Counted, train: PaddedSets, most: int, seed: int) -> Iterator[tuple[BasketMixture, float]]:
    """Models after each round; what is best meanwhile says whether there will be more kinds."""
    whole, generator = counted.independent, torch.Generator().manual_seed(derived_seed(seed, "split"))
    for prior in PRIORS:
        model, best = whole, counted.initial_validation
        while 2 * model.components <= most:
            model, before = split(model, generator), best
            for _ in range(ROUNDS):
                improve(model, train, whole, prior)
                yield model, prior
                best = min(best, counted.history[-1]["validation"])
            if model.components > 2 and best >= before:  # two kinds may be too few to help
                break
    if counted.kind == "independent":
        counted.stopped = "patience"
        return
    model = deepcopy(counted.model)
    for _ in range(MORE):
        before = counted.validation
        improve(model, train, whole, counted.prior)
        yield model, counted.prior
        if counted.validation >= before:
            counted.stopped = "patience"
            return


def _judge(counted: Counted, model: BasketMixture, prior: float, validation: PaddedSets, seconds: float) -> None:
    value = _nll(model, validation)
    counted.rounds += 1
    row = {"step": counted.rounds, "components": model.components, "prior": prior}
    counted.history.append({**row, "validation": value, "seconds": seconds})
    if isfinite(value) and value < counted.validation and bool(model.log_total.isfinite().all()):
        counted.model, counted.validation, counted.prior = deepcopy(model), value, prior


def _nll(model: BasketMixture, sets: PaddedSets) -> float:
    return -float(model.log_prob_flat(sets.items, sets.offsets).mean())
