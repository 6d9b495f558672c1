"""The model behind `TabularFlow`: how it is configured, what it starts from, and how it is trained."""

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from tessella.baselines import BlockAutoregressiveMixture, CategoricalMixture
from tessella.contracts import Batch
from tessella.data import Encoding, Rows, TableShape
from tessella.densities import CellMixture, Flow
from tessella.dequantizers import ConditionalNoise
from tessella.dequantizers.components import MOST, component_counts
from tessella.estimators.coding import CodedRows, CodedTraining, Codes, number_distributions
from tessella.estimators.learning import Plan, dropout, limited_epochs, single_precision, train_by_plan
from tessella.models import (
    BlocksConfig,
    CategoricalMixtureConfig,
    MixtureStartConfig,
    SemiDiscrete,
    StartOptions,
    TableConfig,
)
from tessella.training import FitResult
from tessella.training.randomness import derived_seed, fork_rng, seed_noise

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
    components: int = 0
    groups: int = 0
    """Groups of columns, each modelled given those before it; 0: a flow that starts from a mixture."""

    def __post_init__(self) -> None:
        for name, least in {"dim": 2, "blocks": 1, "width": 1, "components": 0, "groups": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: got {getattr(self, name)}; expected at least {least}")


@dataclass(frozen=True)
class Learned:
    """A model after training, what it is, and what it was before."""

    model: Model
    config: TableConfig
    """That `build` makes the model from."""
    kind: Kind
    start: str
    """What training began with, in words."""
    initial_validation: float
    """Mean -log P of the validation rows under it."""
    validation: float
    """The same under the model; never more."""
    result: FitResult
    history: list[dict[str, Any]]


def flow_config(size: Size) -> MixtureStartConfig:
    """A flow through cells that starts as a mixture."""
    return MixtureStartConfig(
        dim=size.dim,
        components=size.components,
        blocks=size.blocks,
        width=size.width,
        noise=ConditionalNoise(width=size.width, layers=1),
        train_samples=TRAIN_SAMPLES,
        validation_samples=VALIDATION_SAMPLES,
    )


def blocks_config(size: Size, counts: tuple[int, ...], rows: int) -> BlocksConfig:
    """Groups of columns of so many codes, for so many rows to learn from.

    >>> blocks_config(Size(2, 4, 32, groups=2), counts=(3, 9, 512), rows=60_000)
    BlocksConfig(groups=2, components=4, width=64, layers=2, dropout=0.0, fast=False)
    """
    several = size.groups < len(counts)  # a column by itself has nothing to be mixed with
    components = max(1, min(COMPONENTS, NUMBERS // max(component_counts(counts, 0)))) if several else 1
    return BlocksConfig(size.groups, components, 2 * size.width, LAYERS, dropout(rows), fast=False)


def build(config: TableConfig, encoding: Encoding, codes: Codes | None) -> Model:
    """The model of an encoding, in single precision whatever torch's default is: what saved weights are loaded into.

    Args:
        config: of the model; of codes, where they are given.
        encoding: of the rows.
        codes: of the rows, for models that score them; None for a flow.
    """
    with single_precision():
        model = config.build(encoding.shape if codes is None else TableShape(codes.counts))
    if codes is None:
        assert isinstance(model, SemiDiscrete)
        return model
    assert isinstance(model, BlockAutoregressiveMixture | CategoricalMixture)
    return CodedRows(codes, model)


def groups_for(rows: int, columns: int) -> int:
    """Groups of columns for so many rows to learn from; 0: a flow through cells.

    >>> groups_for(9_000, 12), groups_for(20_000, 12), groups_for(60_000, 13), groups_for(10**6, 500)
    (0, 12, 7, 64)
    """
    if rows < ROWS_FOR_GROUPS:
        return 0
    return min(MOST_GROUPS, columns if rows < ROWS_FOR_PAIRS else -(-columns // 2))


def learn(encoding: Encoding, size: Size, rows: tuple[Batch, Batch], plan: Plan) -> Learned:
    """Start and train a model on (training, validation) rows."""
    began = time.perf_counter()
    with single_precision(), fork_rng(torch.device("cpu")):
        torch.manual_seed(derived_seed(plan.seed, "model"))
        return (_learn_blocks if size.groups else _learn_coupling)(encoding, size, rows, plan, began)


def _learn_blocks(encoding: Encoding, size: Size, rows: tuple[Batch, Batch], plan: Plan, began: float) -> Learned:
    """Groups of columns that begin as independent columns. What numbers do inside their codes is never trained."""
    codes = Codes(encoding, number_distributions(encoding, *rows), CODES)
    train, validation = ((codes.codes(*batch), codes.log_spread(*batch)) for batch in rows)
    config = blocks_config(size, codes.counts, len(train[0]))
    started = config.start(TableShape(codes.counts), train[:1], validation[:1])
    assert isinstance(started.model, BlockAutoregressiveMixture)
    model, training = CodedRows(codes, started.model), CodedTraining(started.model)
    before = _mean_nll(model, rows[1], plan.seed)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    sources, plan = (Rows(*train), Rows(*validation)), limited_epochs(plan, len(train[0]))
    result, history = train_by_plan(training, sources, plan, time.perf_counter() - began)
    after = _mean_nll(model, rows[1], plan.seed)
    if after > before:  # training looks at some of these rows only
        model.load_state_dict(weights)
        after = before
    return Learned(model, config, "blocks", started.start, before, after, result, history)


def _learn_coupling(encoding: Encoding, size: Size, rows: tuple[Batch, Batch], plan: Plan, began: float) -> Learned:
    """A flow through cells, or the mixture that it began as, scored exactly, where validation rows do not prefer it."""
    seconds = None if plan.time_budget is None else SHARE_FOR_MIXTURE * plan.time_budget
    started = flow_config(size).start(encoding.shape, *rows, StartOptions(plan.seed, seconds, plan.progress))
    assert isinstance(started.model, SemiDiscrete)
    assert started.mixture is not None
    sources = Rows(*rows[0]), Rows(*rows[1])
    result, history = train_by_plan(started.model, sources, plan, time.perf_counter() - began)
    values = result.initial_validation, result.best_validation
    learned = Learned(started.model, started.config, "coupling", started.start, *values, result, history)
    if encoding.numbers or max(encoding.counts) > MOST:  # then the mixture is of something coarser than the rows
        return learned
    return _better(CodedRows(Codes(encoding, []), started.mixture), rows[1], plan.seed, learned)


def _better(mixture: CodedRows, validation: Batch, seed: int, learned: Learned) -> Learned:
    before, after = (_mean_nll(model, validation, seed) for model in (mixture, learned.model))
    if after < before - NOTICEABLE:
        return replace(learned, initial_validation=before, validation=after)
    exact, config = mixture.to(learned.model.device).eval(), CategoricalMixtureConfig((mixture.components,))
    return replace(learned, model=exact, config=config, kind="mixture", initial_validation=before, validation=before)


def components_of(model: Model) -> int:
    """Of the mixture that a model began as, or of that of each group of columns."""
    if isinstance(model, CodedRows):
        return model.components
    assert isinstance(model.density, Flow)
    assert isinstance(model.density.base, CellMixture)
    return len(model.density.base.log_weight)


def _mean_nll(model: Model, batch: Batch, seed: int) -> float:
    return -float(log_likelihood(model, batch, SAMPLES, seed).mean())


@torch.no_grad()
def log_likelihood(model: Model, batch: Batch, samples: int, seed: int) -> torch.Tensor:
    """log P of every row in nats, or its importance-weighted bound with the same noise every time: (B) on the CPU."""
    with fork_rng(model.device):
        seed_noise(derived_seed(seed, "score"), model.device)
        bound = model.log_prob(*(part.to(model.device) for part in batch), samples=samples).double().cpu()
    bad = (~bound.isfinite()).nonzero().flatten().tolist()
    if bad:
        raise ArithmeticError(f"log-likelihood: {len(bad)} of {len(bound)} rows are not finite (first: rows {bad[:5]})")
    return bound
