"""Which model of baskets the validation baskets prefer."""

import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

import torch

from tessella.baselines.sets import BasketMixture
from tessella.baselines.sets.counting import improve, independent, split
from tessella.data import PaddedSets, SetShape
from tessella.progress import Progress
from tessella.training import StopReason
from tessella.training.randomness import derived_seed

ModelKind = Literal["independent", "mixture"]

PRIORS = (1.0, 4.0)
ROUNDS, MORE = 6, 30  # of each number of kinds, and of the best one at most
COMPONENTS = 256
BASKETS = 10  # of each kind, at least
WEIGHTS = 2**23  # of all kinds, at most: a hundred thousand items have 64 kinds
LARGEST = 500  # items in a basket
ROOM = 1.5  # a basket may be so many times as large as the largest of training


@dataclass
class Chosen:
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


def shape_of(sets: PaddedSets, items: int) -> SetShape:
    """Sizes from 1 to half as many again as were seen."""
    largest = int(sets.offsets.diff().max())
    if largest > LARGEST:
        raise ValueError(f"X: got a basket of {largest} items; expected at most {LARGEST} in each")
    return SetShape(items, 1, min(items, LARGEST, int(ROOM * largest) + 1))


def choose(
    train: PaddedSets,
    validation: PaddedSets,
    shape: SetShape,
    seed: int,
    max_components: int | None = None,
    time_budget: float | None = None,
    progress: bool = True,
) -> Chosen:
    """Kinds of baskets are split in two as long as the validation baskets like it; then the best learns on.

    Args:
        train, validation: baskets.
        shape: of all.
        seed: of the splits.
        max_components: M at most.
        time_budget: in seconds; what is best by then is chosen.
        progress: whether to show it.
    """
    began = time.monotonic()
    whole = independent(train, shape)
    at_first = _nll(whole, validation)
    chosen = Chosen(whole, whole, at_first, at_first)
    most = min(max_components or COMPONENTS, max(1, len(train) // BASKETS), max(1, WEIGHTS // shape.items))
    with Progress("rounds of counting", None, progress) as bar:
        try:
            for model, prior in _candidates(chosen, train, most, seed):
                _judge(chosen, model, prior, validation, time.monotonic() - began)
                bar.move(chosen.rounds, f"{chosen.model.components} kinds, validation {chosen.validation:.3f} nats")
                if time_budget is not None and time.monotonic() - began > time_budget:
                    raise _OutOfTimeError
        except _OutOfTimeError:
            chosen.stopped = "time_budget"
        except KeyboardInterrupt:
            chosen.stopped = "interrupted"
    return chosen


def _candidates(chosen: Chosen, train: PaddedSets, most: int, seed: int) -> Iterator[tuple[BasketMixture, float]]:
    """Models after each round; what is best meanwhile says whether there will be more kinds."""
    whole, generator = chosen.independent, torch.Generator().manual_seed(derived_seed(seed, "split"))
    for prior in PRIORS:
        model, best = whole, chosen.initial_validation
        while 2 * model.components <= most:
            model, before = split(model, generator), best
            for _ in range(ROUNDS):
                improve(model, train, whole, prior)
                yield model, prior
                best = min(best, chosen.history[-1]["validation"])
            if model.components > 2 and best >= before:  # two kinds may be too few to help
                break
    if chosen.kind == "independent":
        chosen.stopped = "patience"
        return
    model = deepcopy(chosen.model)
    for _ in range(MORE):
        before = chosen.validation
        improve(model, train, whole, chosen.prior)
        yield model, chosen.prior
        if chosen.validation >= before:
            chosen.stopped = "patience"
            return


def _judge(chosen: Chosen, model: BasketMixture, prior: float, validation: PaddedSets, seconds: float) -> None:
    value = _nll(model, validation)
    chosen.rounds += 1
    row = {"step": chosen.rounds, "components": model.components, "prior": prior}
    chosen.history.append({**row, "validation": value, "seconds": seconds})
    if isfinite(value) and value < chosen.validation and bool(model.log_total.isfinite().all()):
        chosen.model, chosen.validation, chosen.prior = deepcopy(model), value, prior


def _nll(model: BasketMixture, sets: PaddedSets) -> float:
    return -float(model.log_prob_flat(sets.items, sets.offsets).mean())
