"""Models of baskets that learn by gradients: which of them can pay, and how they are trained."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from tessella.baselines.sets import BasketMixture, ItemTransformer
from tessella.data import PaddedSets, SetShape
from tessella.densities.sets import CouplingSetConfig, MixtureBaseConfig
from tessella.estimators.baskets.network import ModelKind
from tessella.estimators.learning import Plan, limited_epochs, on_gpu, single_precision, train_by_plan
from tessella.models import ItemTransformerConfig, SemiDiscreteSets, SetConfig, SetFlowConfig
from tessella.training import StopReason
from tessella.training.randomness import derived_seed, fork_rng

BASKETS = 1000  # to learn from, at least
PASSES = 3  # over the baskets that there must be time for, at least
SECONDS_PER_LOGIT = {"cpu": 5e-8, "cuda": 1e-9}  # of an update, for each item of a basket and each that it could be
SECONDS_UNPLANNED = 300.0  # for all passes, where no time budget is given
FLOW_ITEMS, FLOW_SIZE = {"cpu": 500, "cuda": 2000}, 8  # that the cells of a flow are tried with
SECONDS = 2.0  # below which nothing is begun
EPOCHS, FEWEST_STEPS = 30, 600
STARTED = 50_000  # baskets, at most, that a model starts from


@dataclass(frozen=True)
class Trained:
    """A model after training, and how it went."""

    kind: ModelKind
    model: ItemTransformer | SemiDiscreteSets
    config: SetConfig
    steps: int
    stopped: StopReason
    history: list[dict[str, Any]]


def why_not(kind: ModelKind, sets: PaddedSets, shape: SetShape, plan: Plan) -> str:
    """Why a model cannot pay, in words; empty where it may.

    Args:
        kind: of those that are learned.
        sets: to learn from.
        shape: of all.
        plan: with the seconds that are there for it.
    """
    device = "cuda" if on_gpu(plan.device) else "cpu"
    if len(sets) < BASKETS:
        return f"{len(sets):,} baskets to learn from; it takes {BASKETS:,}"
    if plan.time_budget is not None and plan.time_budget < SECONDS:
        return f"{plan.time_budget:.1f} s; it takes {SECONDS:.0f} s at least"
    if kind == "coupling":
        largest = int(sets.offsets.diff().max())
        if shape.items > FLOW_ITEMS[device]:
            return f"{shape.items:,} items; it is tried with up to {FLOW_ITEMS[device]:,}"
        return f"baskets of {largest} items; it is tried with up to {FLOW_SIZE}" if largest > FLOW_SIZE else ""
    seconds = len(sets.items) * shape.items * SECONDS_PER_LOGIT[device]
    passes, there = (EPOCHS, SECONDS_UNPLANNED) if plan.time_budget is None else (PASSES, plan.time_budget)
    if passes * seconds <= there:
        return ""
    return f"one pass over the baskets takes about {seconds:,.0f} s; there were {there:,.0f} s, and {passes} are needed"


@dataclass(frozen=True)
class Effort:
    """The size of a network, and how it is trained."""

    config: SetConfig
    batch_size: int
    learning_rate: float
    validation_rows: int

    def tuned(self, plan: Plan, kind: ModelKind) -> Plan:
        """The plan for such a model, with a folder of its own."""
        folder = None if plan.checkpoints is None else plan.checkpoints / kind
        return replace(
            plan,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            validation_rows=self.validation_rows,
            checkpoints=folder,
        )


def _transformer(gpu: bool) -> Effort:
    if gpu:
        return Effort(ItemTransformerConfig(width=128, layers=3, dropout=0.3), 256, 1e-3, 1000)
    return Effort(ItemTransformerConfig(width=64, layers=2, dropout=0.2), 128, 2e-3, 500)


def _coupling(gpu: bool) -> Effort:
    density = CouplingSetConfig(base=MixtureBaseConfig(components=128), blocks=4 if gpu else 2, width=64 if gpu else 32)
    return Effort(SetFlowConfig(density=density), 256 if gpu else 128, 1e-3, 1000 if gpu else 250)


EFFORTS: dict[ModelKind, Callable[[bool], Effort]] = {"transformer": _transformer, "coupling": _coupling}


def learn(
    kind: ModelKind,
    parts: tuple[PaddedSets, PaddedSets],
    shape: SetShape,
    plan: Plan,
    whole: BasketMixture,
    spent: float = 0.0,
) -> Trained:
    """Start and train a model on (training, validation) baskets.

    Args:
        kind: what it is.
        parts: baskets.
        shape: of all.
        plan: how long, and where checkpoints go.
        whole: the independent model, which knows the sizes.
        spent: seconds of the plan's time budget that are others'.
    """
    began, effort = time.perf_counter(), EFFORTS[kind](on_gpu(plan.device))
    train, validation = (PaddedSets(part.items.cpu(), part.offsets.cpu(), size=shape.most) for part in parts)
    tuned = limited_epochs(effort.tuned(plan, kind), len(train), EPOCHS, FEWEST_STEPS)
    with single_precision(), fork_rng(torch.device("cpu")):
        torch.manual_seed(derived_seed(plan.seed, kind))
        model = effort.config.start(shape, *train.batch(torch.arange(min(STARTED, len(train)))))
        assert isinstance(model, ItemTransformer | SemiDiscreteSets)
        model.sizes.log_share.copy_(whole.log_size[0])
        result, history = train_by_plan(model, (train, validation), tuned, spent + time.perf_counter() - began)
    return Trained(kind, model, effort.config, result.steps, result.stopped, history)
