"""The model behind `MixtureFlow`: what it starts from, how many cells it has, how it is trained, and what is kept."""

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from tessella.data import Rows
from tessella.densities import (
    DensityConfig,
    DisjointMixture,
    DisjointMixtureConfig,
    GaussianMixture,
    GaussianMixtureConfig,
)
from tessella.estimators.gaussians import CANDIDATES, MOST_ROWS, fit_gaussians, mean_nll
from tessella.estimators.learning import Plan, single_precision, train_by_plan
from tessella.models import VectorModel
from tessella.training import FitResult
from tessella.training.randomness import derived_seed, fork_rng

SECONDS, EPOCHS, FEWEST_STEPS = 300.0, 100, 1000  # where nothing is said
SHARE_FOR_GAUSSIANS, SHARE_OF_TRIAL = 0.15, 0.08  # of the time budget; a trial's is also that of the steps
MANY_ROWS = 10_000
HEAVY, LIGHT = 8.0, 32.0  # powers of the map into a cell, degrees of Student's t: few rows say little about tails
FEWER = (1, 4, 16)  # cells are tried as many as the Gaussian mixture has components, and so many times fewer

Kept = Literal["flow", "gaussian mixture"]
Trained = tuple[FitResult, list[dict[str, Any]]]


class Started(VectorModel):
    """A model that has its start already: training begins where it stands."""

    def initialize(self, x: Tensor) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Learned:
    """A model after training, what it is, and what it began with."""

    model: VectorModel
    config: DensityConfig
    """That `build` makes its density from."""
    kept: Kept
    initial_validation: float
    """Mean -log p of the validation rows under the Gaussian mixture."""
    validation: float
    """The same under the model; never more."""
    result: FitResult
    history: list[dict[str, Any]]


@dataclass
class _Candidate:
    """A flow with its number of cells, and how its trial went."""

    config: DisjointMixtureConfig
    model: VectorModel
    validation: float


def flow_config(cells: int, blocks: int, width: int, rows: int) -> DisjointMixtureConfig:
    """Spline couplings inside the cells, after a full-covariance map for each; nothing before the cells."""
    return DisjointMixtureConfig(
        cells=cells,
        blocks=0,
        component_blocks=blocks,
        width=width,
        layers=1,
        transform="spline",
        network="residual",
        linear=True,
        squashing=LIGHT if rows >= MANY_ROWS else HEAVY,
        affine=True,
    )


def learn(train: Tensor, validation: Tensor, components: int | None, blocks: int, width: int, plan: Plan) -> Learned:
    """Gaussian mixtures, flows that start from them, a short trial of each, and training of the best; or the Gaussians.

    Args:
        train, validation: standardised rows (M, D), in random order.
        components: cells of the flow, and components of the Gaussian mixture; None: as the validation rows choose.
        blocks, width: of the couplings in the cells.
        plan: of everything together.
    """
    began, plan = time.perf_counter(), _limited(plan, len(train))
    share = None if plan.time_budget is None else SHARE_FOR_GAUSSIANS * plan.time_budget
    wanted = CANDIDATES if components is None else (components,)
    fitted = fit_gaussians(train, validation, wanted, share, plan.seed % 2**31)
    most = min(fitted, key=lambda k: fitted[k][1])
    counts = sorted({max(1, most // fewer) for fewer in FEWER}) if components is None else [components]
    flows = [_started(flow_config(k, blocks, width, len(train)), fitted[k][0], train, plan.seed) for k in counts]
    rows = Rows(train), Rows(validation)
    best, interrupted = _tried(flows, rows, _trial(plan)) if len(flows) > 1 else (flows[0], None)
    result, history = interrupted or train_by_plan(best.model, rows, plan, spent=time.perf_counter() - began)
    gaussians, initial = fitted[most]
    value = mean_nll(best.model.density, validation)
    if value <= initial:
        return Learned(best.model, best.config, "flow", initial, value, result, history)
    model = Started(gaussians.to(next(best.model.parameters()).device))
    return Learned(model, GaussianMixtureConfig(most), "gaussian mixture", initial, initial, result, history)


def _started(config: DisjointMixtureConfig, gaussians: GaussianMixture, train: Tensor, seed: int) -> _Candidate:
    """The flow whose anchors are the means of the mixture, and whose cells fit the rows that fall into them."""
    with single_precision(), fork_rng(torch.device("cpu")), torch.no_grad():
        torch.manual_seed(derived_seed(seed, "model"))
        flow = config.build(tuple(train.shape[1:]))
        assert isinstance(flow.base, DisjointMixture)
        points = flow.bijection.initialize(train[:MOST_ROWS])
        means = gaussians.means().float()
        flow.base.initialize(points, anchors=flow.bijection.forward_and_ladj(means)[0])
    return _Candidate(config, Started(flow), torch.inf)


def _tried(flows: list[_Candidate], rows: tuple[Rows, Rows], plan: Plan) -> tuple[_Candidate, Trained | None]:
    """The flow that is best after a short training, and how that went if Ctrl-C ended it: then it is the last."""
    for flow in flows:
        trained = train_by_plan(flow.model, rows, plan)
        flow.validation = mean_nll(flow.model.density, rows[1].tensors[0])
        if trained[0].stopped == "interrupted":
            return flow, trained
    return min(flows, key=lambda flow: flow.validation), None


def _limited(plan: Plan, rows: int) -> Plan:
    """The plan with five minutes where it has no limit, and with at most 100 epochs where it has no number of steps."""
    if plan.max_steps is not None:
        return plan
    most = max(FEWEST_STEPS, EPOCHS * rows // plan.batch_size)
    return replace(plan, max_steps=most, time_budget=SECONDS if plan.time_budget is None else plan.time_budget)


def _trial(plan: Plan) -> Plan:
    assert plan.max_steps is not None
    seconds = None if plan.time_budget is None else SHARE_OF_TRIAL * plan.time_budget
    return replace(plan, max_steps=max(1, int(SHARE_OF_TRIAL * plan.max_steps)), time_budget=seconds, progress=False)
