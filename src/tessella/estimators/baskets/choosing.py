"""Which model of baskets the validation baskets prefer: those that count first, then those that learn."""

import time
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tessella.baselines.sets import BasketMixture
from tessella.data import PaddedSets, SetShape
from tessella.estimators.baskets.counting import Counted, count
from tessella.estimators.baskets.learning import SECONDS, Trained, learn, why_not
from tessella.estimators.baskets.network import LEARNED, BasketModel, ModelKind, mean_nll
from tessella.estimators.learning import Plan
from tessella.models import SetConfig
from tessella.training import StopReason

Asked = ModelKind | Literal["auto"]

SHARE_FOR_COUNTING = 0.4  # of the time budget, where something else may pay
WATCHED = 2000  # validation baskets, at most, that models are compared on where one is a bound
LARGEST = 500  # items in a basket
ROOM = 1.5  # a basket may be so many times as large as the largest of training


@dataclass
class Chosen:
    """The model, and what it was preferred to.

    Attributes:
        model: the best.
        kind: what it is.
        config: of a model that was learned.
        independent: items that are independent given their number.
        validation: mean -log P of the validation baskets in nats, or a bound of it, by model.
        skipped: why models were not tried, in words.
        steps: rounds of counting or updates, of the model.
        history: of all models that were tried.
        stopped: why fitting ended.
        seconds: of fitting.
    """

    model: BasketModel
    kind: ModelKind
    independent: BasketMixture
    validation: dict[str, float]
    steps: int
    stopped: StopReason
    config: SetConfig | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def shape_of(sets: PaddedSets, items: int) -> SetShape:
    """Sizes from 1 to half as many again as were seen."""
    largest = int(sets.offsets.diff().max())
    if largest > LARGEST:
        raise ValueError(f"X: got a basket of {largest} items; expected at most {LARGEST} in each")
    return SetShape(items, 1, min(items, LARGEST, int(ROOM * largest) + 1))


def choose(
    parts: tuple[PaddedSets, PaddedSets],
    shape: SetShape,
    plan: Plan,
    asked: Asked = "auto",
    max_components: int | None = None,
    samples: int = 24,
) -> Chosen:
    """Count for a while; then those that learn share what is left of the time.

    Args:
        parts: (training, validation) baskets.
        shape: of all.
        plan: how long, and with which seed.
        asked: what the model shall be; "auto": what the validation baskets prefer.
        max_components: of a mixture.
        samples: of bounds.
    """
    began, learned = time.monotonic(), [kind for kind in LEARNED if asked in (kind, "auto")]
    skipped = _skipped(learned, parts[0], shape, plan) if asked == "auto" else {}
    learned = [kind for kind in learned if kind not in skipped]
    share = SHARE_FOR_COUNTING if learned else 1.0
    most = max_components if asked in ("auto", "mixture") else 1
    counted = count(*parts, shape, replace(plan, time_budget=_times(plan.time_budget, share)), most)
    chosen = _counted(counted, skipped)
    if learned:
        watched = _first(parts[1], WATCHED)
        models = {"independent": counted.independent, counted.kind: counted.model}
        chosen.validation = {kind: mean_nll(model, watched, samples, plan.seed) for kind, model in models.items()}
        _learn(chosen, learned, (*parts, watched), shape, plan, asked, samples, began)
    chosen.seconds = time.monotonic() - began
    return chosen


def _learn(
    chosen: Chosen,
    kinds: list[ModelKind],
    parts: tuple[PaddedSets, PaddedSets, PaddedSets],
    shape: SetShape,
    plan: Plan,
    asked: Asked,
    samples: int,
    began: float,
) -> None:
    """One after another, in equal shares of the time that is left; a model that was asked for has no excuse."""
    train, validation, watched = parts
    for place, kind in enumerate(kinds):
        left = None if plan.time_budget is None else plan.time_budget - (time.monotonic() - began)
        if asked == "auto" and (why := _too_late(chosen, left)):
            chosen.skipped[kind] = why
            continue
        spent = 0.0 if plan.time_budget is None or left is None else plan.time_budget - left / (len(kinds) - place)
        try:
            trained = learn(kind, (train, validation), shape, plan, chosen.independent, spent)
            value = mean_nll(trained.model, watched, samples, plan.seed)
        except ArithmeticError as error:
            if asked != "auto":
                raise
            chosen.skipped[kind] = str(error)
        else:
            _judge(chosen, trained, value, asked == kind)


def _skipped(kinds: list[ModelKind], train: PaddedSets, shape: SetShape, plan: Plan) -> dict[str, str]:
    """Those that cannot pay in the time that counting leaves, and why."""
    later = replace(plan, time_budget=_times(plan.time_budget, 1 - SHARE_FOR_COUNTING))
    found = {kind: why_not(kind, train, shape, later) for kind in kinds}
    return {kind: why for kind, why in found.items() if why}


def _too_late(chosen: Chosen, left: float | None) -> str:
    """Why nothing is begun any more; empty where it is."""
    if chosen.stopped == "interrupted":
        return "fitting was interrupted before"
    return "no time was left" if left is not None and left < SECONDS else ""


def _counted(counted: Counted, skipped: dict[str, str]) -> Chosen:
    validation: dict[str, float] = {"independent": counted.initial_validation, counted.kind: counted.validation}
    history = [{"model": "mixture", **row} for row in counted.history]
    about = counted.model, counted.kind, counted.independent, validation, counted.rounds, counted.stopped
    return Chosen(*about, skipped=skipped, history=history)


def _judge(chosen: Chosen, trained: Trained, value: float, asked: bool) -> None:
    """Take the model that was trained where it is better than what there was, or was asked for."""
    chosen.history += [{"model": trained.kind, **row} for row in trained.history]
    if asked or value < chosen.validation[chosen.kind]:
        chosen.model, chosen.kind, chosen.config = trained.model, trained.kind, trained.config
        chosen.steps, chosen.stopped = trained.steps, trained.stopped
    if trained.stopped == "interrupted":
        chosen.stopped = "interrupted"
    chosen.validation[trained.kind] = value


def _first(sets: PaddedSets, most: int) -> PaddedSets:
    """The first ones, which are in random order."""
    offsets = sets.offsets[: most + 1]
    return PaddedSets(sets.items[: int(offsets[-1])], offsets)


def _times(seconds: float | None, share: float) -> float | None:
    return None if seconds is None else share * seconds
