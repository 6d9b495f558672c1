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
from tessella.estimators.baskets.resuming import Checkpoint, Past
from tessella.estimators.learning import Plan
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

    def after(self, model: BasketMixture) -> Past:
        """What is kept after a round of this model."""
        return Past(self.history, model, self.model, self.validation, self.prior)


class _OutOfTimeError(Exception):
    """The budget is spent."""


def count(
    train: PaddedSets, validation: PaddedSets, shape: SetShape, plan: Plan, max_components: int | None = None
) -> Counted:
    """Kinds of baskets are split in two as long as the validation baskets like it; then the best learns on.

    Args:
        train, validation: baskets.
        shape: of all.
        plan: the seed of the splits, the seconds after which what is best is taken, and where the state is kept.
        max_components: M at most.
    """
    began = time.monotonic()
    whole = independent(train, shape)
    at_first = _nll(whole, validation)
    counted = Counted(whole, whole, at_first, at_first)
    most = min(max_components or COMPONENTS, max(1, len(train) // BASKETS), max(1, WEIGHTS // shape.items))
    asked = {"most": most, "seed": plan.seed, "time_budget": plan.time_budget, "largest": shape.most}
    checkpoint = Checkpoint(plan.checkpoints, asked, train, validation)
    past = checkpoint.read(shape)
    if past is not None:
        began -= past.history[-1]["seconds"]
    with Progress("rounds of counting", None, plan.progress) as bar:
        try:
            for model, prior in _candidates(counted, most, plan.seed):
                if past is not None and counted.rounds < len(past.history):
                    _repeat(counted, model, prior, past)
                else:
                    improve(model, train, whole, prior)
                    _judge(counted, model, prior, validation, time.monotonic() - began)
                    checkpoint.write(counted.after(model))
                bar.move(counted.rounds, f"{counted.model.components} kinds, validation {counted.validation:.3f} nats")
                if plan.time_budget is not None and time.monotonic() - began > plan.time_budget:
                    raise _OutOfTimeError
        except _OutOfTimeError:
            counted.stopped = "time_budget"
        except KeyboardInterrupt:
            counted.stopped = "interrupted"
    if counted.rounds and counted.stopped != "interrupted":  # then its last round is no whole one
        checkpoint.write(counted.after(model), last=True)
    return counted


def _candidates(counted: Counted, most: int, seed: int) -> Iterator[tuple[BasketMixture, float]]:
    """Models for the next round, and their prior; what is best meanwhile says whether there will be more kinds."""
    whole, generator = counted.independent, torch.Generator().manual_seed(derived_seed(seed, "split"))
    for prior in PRIORS:
        model, best = whole, counted.initial_validation
        while 2 * model.components <= most:
            model, before = split(model, generator), best
            for _ in range(ROUNDS):
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


def _repeat(counted: Counted, model: BasketMixture, prior: float, past: Past) -> None:
    """A round that was counted before: its outcome is known, and after the last of them the models are, too."""
    row = past.history[counted.rounds]
    counted.rounds += 1
    counted.history.append(row)
    if row["validation"] < counted.validation:
        counted.model, counted.validation, counted.prior = model, row["validation"], prior
    if counted.rounds == len(past.history):
        model.load_state_dict(past.now.state_dict())
        model.changed()
        counted.model = past.best.to(model.log_weight.device)
        counted.validation, counted.prior = past.validation, past.prior


def _nll(model: BasketMixture, sets: PaddedSets) -> float:
    return -float(model.log_prob_flat(sets.items, sets.offsets).mean())
