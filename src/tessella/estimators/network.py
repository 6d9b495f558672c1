"""The model behind an estimator: how it is built, what it starts from, and how it is trained."""

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from tessella.baselines import BlockAutoregressiveMixture, CategoricalMixture
from tessella.baselines.choosing import fit_mixture
from tessella.data import Rows
from tessella.data.tables.encoding import Encoding
from tessella.densities import CellMixture, Flow, Gaussian, conditional_flow, token_flow
from tessella.dequantizers.cells import VoronoiCells
from tessella.dequantizers.components import MOST, Components, component_counts, components_in_cells
from tessella.dequantizers.mixed import MixedContext, MixedDequantizer
from tessella.estimators.coded import CodedRows, CodedTraining
from tessella.estimators.codes import Codes, number_distributions
from tessella.estimators.learning import Plan, dropout, limited_epochs, single_precision, train_by_plan
from tessella.models import SemiDiscrete
from tessella.training import FitResult
from tessella.training.randomness import derived_seed, fork_rng, seed_noise

CONTEXT = 32
NOISE_BLOCKS = 2
TRAIN_SAMPLES = VALIDATION_SAMPLES = 4
ROWS_FOR_GROUPS = 10_000
"""Tables of so many rows are modelled in groups of columns; smaller ones are learned better from a mixture."""
MOST_GROUPS, ROWS_FOR_PAIRS = 64, 50_000
"""A column is a group, or from so many rows on two are: half the work, and a mixture learns what they have to do with
each other; fewer rows do not teach it that."""
CODES = 48  # of a number, about, in groups of columns
COMPONENTS, NUMBERS, LAYERS = 8, 1024, 2  # of a group's mixture, but not so many probabilities of a column
SHARE_FOR_MIXTURE = 0.2  # of the time budget
SAMPLES = 64  # of the bound that scores
NOTICEABLE = 2e-3  # nats per row by which a flow must beat the mixture that it began as

Kind = Literal["coupling", "blocks", "mixture"]
"""coupling: a flow through cells that began as a mixture; mixture: that mixture, scored exactly, where the flow learned
nothing beyond it; blocks: groups of columns, each given those before it by a mixture, exactly."""
Model = SemiDiscrete | CodedRows


@dataclass(frozen=True)
class Size:
    """What decides how large a model is; the number of components may be left to the validation rows (0)."""

    dim: int
    blocks: int
    width: int
    classes: int = 0
    groups: int = 0
    """Groups of columns, each modelled given those before it; 0: a flow that starts from a mixture."""
    dropout: float = 0.0
    """Of the network of groups of columns."""

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


def build(encoding: Encoding, size: Size, kind: Kind, codes: Codes | None = None) -> Model:
    """The model of an encoding, in single precision whatever torch's default is.

    Args:
        encoding: of the rows.
        size: how large; its number of components is fixed.
        kind: which.
        codes: of the rows, for all kinds but a coupling flow.
    """
    with single_precision():
        if kind == "coupling":
            base = CellMixture(component_counts(encoding.counts, len(encoding.numbers)), size.dim, size.classes)
            density = token_flow(base, size.blocks, size.width, 1, norm=False)
            return SemiDiscrete(_dequantizer(encoding, size), density, TRAIN_SAMPLES, VALIDATION_SAMPLES)
        assert codes is not None
        if kind == "mixture":
            return CodedRows(codes, CategoricalMixture(codes.counts, size.classes))
        several = size.groups < len(codes.counts)  # a column by itself has nothing to be mixed with
        components = max(1, min(COMPONENTS, NUMBERS // max(component_counts(codes.counts, 0)))) if several else 1
        network = BlockAutoregressiveMixture(
            codes.counts, size.groups, components, 2 * size.width, LAYERS, size.dropout
        )
        return CodedRows(codes, network)


def _dequantizer(encoding: Encoding, size: Size) -> MixedDequantizer:
    counts, numbers = encoding.counts, len(encoding.numbers)
    cells = VoronoiCells(counts, size.dim, squashing="root")  # which leaves the middle of a cell as it is
    base = Gaussian((len(counts) + numbers, size.dim))
    noise = conditional_flow(base, NOISE_BLOCKS, size.width, 1, CONTEXT, tokens=True)
    context = MixedContext(counts, numbers, CONTEXT, size.width)
    return MixedDequantizer(cells, noise, context, encoding.unit, encoding.indicators)


def groups_for(rows: int, columns: int) -> int:
    """Groups of columns for so many rows to learn from; 0: a flow through cells.

    >>> groups_for(9_000, 12), groups_for(20_000, 12), groups_for(60_000, 13), groups_for(10**6, 500)
    (0, 12, 7, 64)
    """
    if rows < ROWS_FOR_GROUPS:
        return 0
    return min(MOST_GROUPS, columns if rows < ROWS_FOR_PAIRS else -(-columns // 2))


def learn(encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan) -> Learned:
    """Build, start and train on (training, validation) rows."""
    began = time.perf_counter()
    with single_precision(), fork_rng(torch.device("cpu")):
        torch.manual_seed(derived_seed(plan.seed, "model"))
        return (_learn_blocks if size.groups else _learn_coupling)(encoding, size, rows, plan, began)


def _learn_blocks(encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan, began: float) -> Learned:
    """Groups of columns that begin as independent columns. What numbers do inside their codes is never trained."""
    codes = Codes(encoding, number_distributions(encoding, *rows), CODES)
    size = replace(size, dropout=dropout(len(rows[0])))
    model = build(encoding, size, "blocks", codes)
    assert isinstance(model, CodedRows)
    training = CodedTraining(model)
    training.model.start(codes.codes(rows[0]))
    before = -float(log_likelihood(model, rows[1], SAMPLES, plan.seed).mean())
    start = {name: weight.clone() for name, weight in training.state_dict().items()}
    prepared = training.prepared(rows[0]), training.prepared(rows[1])
    plan = limited_epochs(plan, len(rows[0]))
    result, history = train_by_plan(training, prepared, plan, time.perf_counter() - began)
    after = -float(log_likelihood(model, rows[1], SAMPLES, plan.seed).mean())
    if after > before:  # training looks at some of these rows only
        training.load_state_dict(start)
        after = before
    return Learned(model, "blocks", "independent columns", before, after, result, history)


def _learn_coupling(encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan, began: float) -> Learned:
    """A flow through cells, or the mixture that it began as, scored exactly, where validation rows do not prefer it."""
    flow, mixture = _started(encoding, size, rows, plan)
    result, history = train_by_plan(flow, (Rows(rows[0]), Rows(rows[1])), plan, time.perf_counter() - began)
    start = f"a mixture of {mixture.components} products of columns"
    values = result.initial_validation, result.best_validation
    learned = Learned(flow, "coupling", start, *values, result, history)
    if encoding.numbers or max(encoding.counts) > MOST:  # then the mixture is of something coarser than the rows
        return learned
    return _better(CodedRows(Codes(encoding, []), mixture), rows[1], plan.seed, learned)


def _better(mixture: CodedRows, validation: Tensor, seed: int, learned: Learned) -> Learned:
    before = -float(log_likelihood(mixture, validation, SAMPLES, seed).mean())
    after = -float(log_likelihood(learned.model, validation, SAMPLES, seed).mean())
    if after < before - NOTICEABLE:
        return replace(learned, initial_validation=before, validation=after)
    exact = mixture.to(learned.model.device).eval()
    return replace(learned, model=exact, kind="mixture", initial_validation=before, validation=before)


def _started(
    encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan
) -> tuple[SemiDiscrete, CategoricalMixture]:
    """A flow that already is a mixture of products: cells apart, narrow noise, a mode of the base in each."""
    arranged, modes = _arranged(encoding, size, rows[0])
    found, watched = (arranged.components_of_rows(modes, part) for part in rows)
    budget = None if plan.time_budget is None else SHARE_FOR_MIXTURE * plan.time_budget
    mixture = fit_mixture(modes.counts, found, watched, size.classes, budget, plan.seed, plan.progress)
    model = build(encoding, replace(size, classes=mixture.components), "coupling")
    assert isinstance(model, SemiDiscrete)
    model.dequantizer.load_state_dict(arranged.state_dict())
    _base_of(model).start(mixture.log_weight, mixture.log_table, modes.centre, modes.scale)
    return model, mixture


def _arranged(encoding: Encoding, size: Size, train: Tensor) -> tuple[MixedDequantizer, Components]:
    """Cells where the rows suggest, and where the points in them gather."""
    arranged = _dequantizer(encoding, size)
    arranged.arrange(train, encoding.ordinal)
    assert isinstance(arranged.cells, VoronoiCells)
    return arranged, components_in_cells(arranged.cells, train[:, : len(encoding.counts)].long(), len(encoding.numbers))


def _base_of(model: SemiDiscrete) -> CellMixture:
    assert isinstance(model.density, Flow)
    assert isinstance(model.density.base, CellMixture)
    return model.density.base


def components_of(model: Model) -> int:
    """Of the mixture that a model began as, or of that of each group of columns."""
    return model.components if isinstance(model, CodedRows) else len(_base_of(model).log_weight)


@torch.no_grad()
def log_likelihood(model: Model, rows: Tensor, samples: int, seed: int) -> Tensor:
    """log P of every row in nats, or its importance-weighted bound with the same noise every time: (B) on the CPU."""
    with fork_rng(model.device):
        seed_noise(derived_seed(seed, "score"), model.device)
        bound = model.log_prob(rows.to(model.device), samples).double().cpu()
    bad = (~bound.isfinite()).nonzero().flatten().tolist()
    if bad:
        raise ArithmeticError(f"log-likelihood: {len(bad)} of {len(rows)} rows are not finite (first: rows {bad[:5]})")
    return bound
