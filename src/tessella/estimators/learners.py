"""From rows to a trained model, for each density that `TabularFlow` knows."""

import time
from collections.abc import Callable
from dataclasses import replace

import torch

from tessella.baselines import BlockAutoregressiveMixture
from tessella.contracts import Batch, Stream
from tessella.data import Encoding, Rows, TableShape
from tessella.dequantizers import ConditionalNoise
from tessella.dequantizers.components import MOST, component_counts
from tessella.estimators.any_order import learn_autoregressive, learn_best
from tessella.estimators.coding import CodedRows, CodedTraining, Codes, number_distributions
from tessella.estimators.learning import Plan, dropout, limited_epochs, single_precision, train_by_plan
from tessella.estimators.network import Learned, mean_nll
from tessella.estimators.settings import BLOCKS, DIM, WIDTH, Density, Settings
from tessella.models import BlocksConfig, CategoricalMixtureConfig, MixtureStartConfig, SemiDiscrete, StartOptions
from tessella.training.randomness import derived_seed, fork_rng

TRAIN_SAMPLES = VALIDATION_SAMPLES = 4
MOST_GROUPS, ROWS_FOR_PAIRS = 64, 50_000
"""A column is a group, or from so many rows on two are: half the work, and a mixture learns what they have to do with
each other; fewer rows do not teach it that."""
CODES = 48  # of a number, about, in groups of columns
COMPONENTS, NUMBERS, LAYERS = 8, 1024, 2  # of a group's mixture, but not so many probabilities of a column
BLOCKS_RATE, FLOW_RATE, BATCH = 4e-3, 1e-3, 64  # peaks of the learning rate, rows per update
SHARE_FOR_MIXTURE = 0.2  # of the time budget
STREAMED: tuple[Density, ...] = ("auto", "autoregressive")  # what learns from tables larger than memory
NOTICEABLE = 2e-3  # nats per row by which a flow must beat the mixture that it began as


def learn(
    encoding: Encoding, settings: Settings, rows: tuple[Batch, Batch], plan: Plan, stream: Stream | None = None
) -> Learned:
    """Start and train a model on (training, validation) rows; or train on a stream, of which the first are some."""
    began = time.perf_counter()
    if stream is not None and settings.density not in STREAMED:
        raise ValueError(
            f"density: got {settings.density!r} for a table that is larger than memory; expected one of "
            f"{', '.join(STREAMED)}"
        )
    with single_precision(), fork_rng(torch.device("cpu")):
        torch.manual_seed(derived_seed(plan.seed, "model"))
        if stream is not None:
            return learn_autoregressive(encoding, settings, rows, plan, began, stream)
        return _LEARNERS[settings.density](encoding, settings, rows, plan, began)


def flow_config(settings: Settings) -> MixtureStartConfig:
    """A flow through cells that starts as a mixture."""
    width = settings.width or WIDTH["coupling"]
    return MixtureStartConfig(
        dim=settings.dim or DIM,
        components=settings.components or 0,
        blocks=settings.blocks or BLOCKS,
        width=width,
        noise=ConditionalNoise(width=width, layers=1),
        train_samples=TRAIN_SAMPLES,
        validation_samples=VALIDATION_SAMPLES,
    )


def blocks_config(settings: Settings, counts: tuple[int, ...], rows: int) -> BlocksConfig:
    """Groups of columns of so many codes, for so many rows to learn from.

    >>> blocks_config(Settings("blocks", groups=2), counts=(3, 9, 512), rows=60_000)
    BlocksConfig(groups=2, components=4, width=64, layers=2, dropout=0.0, fast=False)
    """
    groups = settings.groups or groups_for(rows, len(counts))
    several = groups < len(counts)  # a column by itself has nothing to be mixed with
    components = max(1, min(COMPONENTS, NUMBERS // max(component_counts(counts, 0)))) if several else 1
    width = 2 * (settings.width or WIDTH["blocks"])
    return BlocksConfig(groups, components, width, LAYERS, dropout(rows), fast=False)


def groups_for(rows: int, columns: int) -> int:
    """Groups of columns for so many rows to learn from.

    >>> groups_for(20_000, 12), groups_for(60_000, 13), groups_for(10**6, 500)
    (12, 7, 64)
    """
    return min(MOST_GROUPS, columns if rows < ROWS_FOR_PAIRS else -(-columns // 2))


def _learn_blocks(
    encoding: Encoding, settings: Settings, rows: tuple[Batch, Batch], plan: Plan, began: float
) -> Learned:
    """Groups of columns that begin as independent columns. What numbers do inside their codes is never trained."""
    codes = Codes(encoding, number_distributions(encoding, *rows), CODES)
    train, validation = ((codes.codes(*batch), codes.log_spread(*batch)) for batch in rows)
    config = blocks_config(settings, codes.counts, len(train[0]))
    started = config.start(TableShape(codes.counts), train[:1], validation[:1])
    assert isinstance(started.model, BlockAutoregressiveMixture)
    model, training = CodedRows(codes, started.model), CodedTraining(started.model)
    before = mean_nll(model, rows[1], plan.seed)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    sources, plan = (
        (Rows(*train), Rows(*validation)),
        limited_epochs(settings.tuned(plan, BLOCKS_RATE, BATCH), len(train[0])),
    )
    result, history = train_by_plan(training, sources, plan, time.perf_counter() - began)
    after = mean_nll(model, rows[1], plan.seed)
    if after > before:  # training looks at some of these rows only
        model.load_state_dict(weights)
        after = before
    return Learned(model, config, "blocks", started.start, before, after, result, history)


def _learn_coupling(
    encoding: Encoding, settings: Settings, rows: tuple[Batch, Batch], plan: Plan, began: float
) -> Learned:
    """A flow through cells, or the mixture that it began as, scored exactly, where validation rows do not prefer it."""
    seconds = None if plan.time_budget is None else SHARE_FOR_MIXTURE * plan.time_budget
    started = flow_config(settings).start(encoding.shape, *rows, StartOptions(plan.seed, seconds, plan.progress))
    assert isinstance(started.model, SemiDiscrete)
    assert started.mixture is not None
    sources = Rows(*rows[0]), Rows(*rows[1])
    tuned = settings.tuned(plan, FLOW_RATE, BATCH)
    result, history = train_by_plan(started.model, sources, tuned, time.perf_counter() - began)
    values = result.initial_validation, result.best_validation
    learned = Learned(started.model, started.config, "coupling", started.start, *values, result, history)
    if encoding.numbers or max(encoding.counts) > MOST:  # then the mixture is of something coarser than the rows
        return learned
    return _better(CodedRows(Codes(encoding, []), started.mixture), rows[1], plan.seed, learned)


def _better(mixture: CodedRows, validation: Batch, seed: int, learned: Learned) -> Learned:
    before, after = (mean_nll(model, validation, seed) for model in (mixture, learned.model))
    if after < before - NOTICEABLE:
        return replace(learned, initial_validation=before, validation=after)
    exact, config = mixture.to(learned.model.device).eval(), CategoricalMixtureConfig((mixture.components,))
    return replace(learned, model=exact, config=config, kind="mixture", initial_validation=before, validation=before)


Learner = Callable[[Encoding, Settings, tuple[Batch, Batch], Plan, float], Learned]
_LEARNERS: dict[Density, Learner] = {
    "auto": learn_best,
    "autoregressive": learn_autoregressive,
    "blocks": _learn_blocks,
    "coupling": _learn_coupling,
}
