"""The model behind an estimator: how it is built, what it starts from, and how it is trained."""

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from tessella.baselines import BlockAutoregressiveMixture, CategoricalMixture, Independent
from tessella.baselines.classes import fit_classes
from tessella.densities import CoupledModes, Flow, Gaussian, LatentClasses, conditional_flow, token_flow
from tessella.dequantizers.cells import VoronoiCells
from tessella.dequantizers.mixed import MixedContext, MixedDequantizer
from tessella.dequantizers.modes import MOST, Modes, mode_counts, modes_of
from tessella.estimators.categorical import CategoricalRows
from tessella.estimators.encoding import Encoding
from tessella.estimators.learning import Plan, single_precision, train_by_plan
from tessella.models import SemiDiscrete
from tessella.training import FitResult
from tessella.training.randomness import derived_seed, seed_noise, undisturbed_noise

CONTEXT = 32
NOISE_BLOCKS = 2
TRAIN_SAMPLES = 4
GROUPS, ROWS_FOR_GROUPS = 8, 10_000
"""Tables of so many rows are modelled in groups of columns; smaller ones are learned better from a mixture."""
CATEGORICAL_GROUPS = 16  # of columns of categories alone, which are cheap to draw
COMPONENTS, NUMBERS, LAYERS = 16, 1024, 2  # of each group's mixture, but not so many probabilities of a column
SHARE_FOR_CLASSES = 0.2  # of the time budget
VALIDATION_SAMPLES = 4
SAMPLES, GROUPED_SAMPLES = 64, 16  # of the bound that scores; groups of columns have a tighter one

Kind = Literal["coupling", "blocks", "mixture"]
"""coupling: a flow through cells that began as a mixture; blocks: groups of columns, each given those before it, by
mixtures (with numbers behind a flow through cells, without them exactly); mixture: the start of a flow that learned
nothing beyond it."""
Model = SemiDiscrete | CategoricalRows


@dataclass(frozen=True)
class Size:
    """What decides how large a model is; the number of components may be left to the validation rows (0)."""

    dim: int
    blocks: int
    width: int
    classes: int = 0
    groups: int = 0
    """Groups of columns, each modelled given those before it; 0: a flow that starts from a mixture."""

    def __post_init__(self) -> None:
        for name, least in {"dim": 2, "blocks": 1, "width": 1, "classes": 0, "groups": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: got {getattr(self, name)}; expected at least {least}")


@dataclass(frozen=True)
class Learned:
    """A model after training, what it is, and what it was before."""

    model: Model
    kind: Kind
    start: str
    """What training began with, in words."""
    initial_validation: float
    """Mean -log P of the validation rows under it."""
    validation: float
    """The same under the model; never more."""
    result: FitResult
    history: list[dict[str, Any]]


def build(encoding: Encoding, size: Size, kind: Kind) -> Model:
    """The model of an encoding, in single precision whatever torch's default is."""
    with single_precision():
        if kind == "mixture":
            return CategoricalRows(CategoricalMixture(encoding.counts, size.classes))
        if kind == "blocks" and not encoding.numbers:
            return _categorical_blocks(encoding, size)
        modes = mode_counts(encoding.counts, len(encoding.numbers))
        base: LatentClasses | CoupledModes = LatentClasses(modes, size.dim, size.classes)
        samples = TRAIN_SAMPLES, VALIDATION_SAMPLES
        if kind == "blocks":
            groups, samples = min(size.groups, len(modes)), (1, 1)  # the ELBO is close to tight
            base = CoupledModes(modes, size.dim, groups, _components(modes), 2 * size.width, LAYERS)
        density = token_flow(base, size.blocks, size.width, 1, norm=False)
        return SemiDiscrete(_dequantizer(encoding, size), density, *samples)


def _components(counts: tuple[int, ...]) -> int:
    return max(1, min(COMPONENTS, NUMBERS // max(counts)))


def _categorical_blocks(encoding: Encoding, size: Size) -> CategoricalRows:
    components = _components(mode_counts(encoding.counts, 0))
    return CategoricalRows(BlockAutoregressiveMixture(encoding.counts, size.groups, components, 2 * size.width, LAYERS))


def _dequantizer(encoding: Encoding, size: Size) -> MixedDequantizer:
    counts, numbers = encoding.counts, len(encoding.numbers)
    cells = VoronoiCells(counts, size.dim, squashing="root")  # which leaves the middle of a cell as it is
    base = Gaussian((len(counts) + numbers, size.dim))
    noise = conditional_flow(base, NOISE_BLOCKS, size.width, 1, CONTEXT, tokens=True)
    context = MixedContext(counts, numbers, CONTEXT, size.width)
    return MixedDequantizer(cells, noise, context, encoding.unit, encoding.indicators)


def learn(encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan) -> Learned:
    """Build, start and train on (training, validation) rows."""
    began = time.perf_counter()
    with single_precision(), undisturbed_noise(torch.device("cpu")):
        torch.manual_seed(derived_seed(plan.seed, "model"))
        if size.groups:
            model = _started_blocks(encoding, size, rows[0])
            result, history = train_by_plan(model, rows, plan, time.perf_counter() - began)
            values = result.initial_validation, result.best_validation
            return Learned(model, "blocks", "independent columns", *values, result, history)
        flow, mixture = _started_coupling(encoding, size, rows, plan)
        result, history = train_by_plan(flow, rows, plan, time.perf_counter() - began)
    start = f"a mixture of {mixture.components} products of columns"
    values = result.initial_validation, result.best_validation
    learned = Learned(flow, "coupling", start, *values, result, history)
    if encoding.numbers or max(encoding.counts) > MOST:  # then the mixture is of something coarser than the rows
        return learned
    return _better(mixture, rows[1], plan.seed, learned)


def _better(mixture: CategoricalMixture, validation: Tensor, seed: int, learned: Learned) -> Learned:
    """The flow, or the mixture that it began as, scored exactly, where the validation rows do not prefer the flow."""
    before = -float(mixture.log_prob(validation.long()).mean())
    after = -float(log_likelihood(learned.model, validation, SAMPLES, seed).mean())
    if after < before:
        return replace(learned, initial_validation=before, validation=after)
    exact = CategoricalRows(mixture).to(learned.model.device).eval()
    return replace(learned, model=exact, kind="mixture", initial_validation=before, validation=before)


def _started_blocks(encoding: Encoding, size: Size, train: Tensor) -> Model:
    """Groups of columns that begin as independent columns."""
    model = build(encoding, size, "blocks")
    if isinstance(model, CategoricalRows):
        assert isinstance(model.model, BlockAutoregressiveMixture)
        model.model.start(train.long())
        return model
    arranged, modes = _arranged(encoding, size, train)
    model.dequantizer.load_state_dict(arranged.state_dict())
    base = _base_of(model)
    assert isinstance(base, CoupledModes)
    found = arranged.modes_of_rows(modes, train)
    base.start(Independent(modes.counts).log_frequencies(found), modes.centre, modes.scale)
    return model


def _started_coupling(
    encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan
) -> tuple[SemiDiscrete, CategoricalMixture]:
    """A flow that already is a mixture of products: cells apart, narrow noise, a mode of the base in each."""
    arranged, modes = _arranged(encoding, size, rows[0])
    found, watched = (arranged.modes_of_rows(modes, part) for part in rows)
    budget = None if plan.time_budget is None else SHARE_FOR_CLASSES * plan.time_budget
    mixture = fit_classes(modes.counts, found, watched, size.classes, budget, plan.seed, plan.progress)
    model = build(encoding, replace(size, classes=mixture.components), "coupling")
    assert isinstance(model, SemiDiscrete)
    model.dequantizer.load_state_dict(arranged.state_dict())
    base = _base_of(model)
    assert isinstance(base, LatentClasses)
    base.start(mixture.log_weight, mixture.log_table, modes.centre, modes.scale)
    return model, mixture


def _arranged(encoding: Encoding, size: Size, train: Tensor) -> tuple[MixedDequantizer, Modes]:
    """Cells where the rows suggest, and where the points in them gather."""
    arranged = _dequantizer(encoding, size)
    arranged.arrange(train, encoding.ordinal)
    assert isinstance(arranged.cells, VoronoiCells)
    return arranged, modes_of(arranged.cells, train[:, : len(encoding.counts)].long(), len(encoding.numbers))


def _base_of(model: SemiDiscrete) -> LatentClasses | CoupledModes:
    assert isinstance(model.density, Flow)
    base = model.density.base
    assert isinstance(base, LatentClasses | CoupledModes)
    return base


def components_of(model: Model) -> int:
    """Of the mixture that a model began as, or of that of each group of columns."""
    if isinstance(model, CategoricalRows):
        return model.components
    base = _base_of(model)
    return base.mixture.components if isinstance(base, CoupledModes) else len(base.log_weight)


@torch.no_grad()
def log_likelihood(model: Model, rows: Tensor, samples: int, seed: int) -> Tensor:
    """log P of every row in nats, or its importance-weighted bound with the same noise every time: (B) on the CPU."""
    with undisturbed_noise(model.device):
        seed_noise(derived_seed(seed, "score"), model.device)
        bound = model.log_prob(rows.to(model.device), samples).double().cpu()
    bad = (~bound.isfinite()).nonzero().flatten().tolist()
    if bad:
        raise ArithmeticError(f"log-likelihood: {len(bad)} of {len(rows)} rows are not finite (first: rows {bad[:5]})")
    return bound
