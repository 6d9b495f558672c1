"""The exact density of `TabularFlow`: one column after another, in any order; its size, and how it is trained."""

import time
from dataclasses import dataclass, replace

import torch

from tessella.baselines import CategoricalMixture
from tessella.baselines.choosing import MOST_ROWS, fit_mixture
from tessella.contracts import Batch, Stream
from tessella.data import Encoding, Rows
from tessella.estimators.coding import CodedRows, Codes, number_distributions
from tessella.estimators.learning import Plan, limited_epochs, on_gpu, train_by_plan
from tessella.estimators.network import Learned, mean_nll
from tessella.estimators.settings import Settings
from tessella.models import AutoregressiveConfig, AutoregressiveTable, CategoricalMixtureConfig
from tessella.nets.ragged import ragged_cells
from tessella.training.config import Optimizer

CODES = 16  # of a number, about, in a mixture
FEWEST_COMPONENTS = 3  # fewer are independent columns, and the background
WORTH = 1e-3  # nats per row that a network must bring which began as the mixture: that draws faster
SHARE_FOR_MIXTURE, SECONDS_FOR_MIXTURE = 0.1, 20.0  # of the time budget; at most
VERY_FEW, FEW, MANY, FEWEST_STEPS = 3_000, 10_000, 50_000, 600
LONG = 1800.0  # seconds, in which a CPU trains a larger network
ORDERS, ROWS_FOR_ORDERS = (1, 4, 16), 1000  # numbers of orders tried, as long as more are better
NOTICEABLE = 0.02  # nats per row that more orders must bring
ROWS_FOR_START, ROWS_FOR_VALUE = 500_000, 20_000  # at most: for bins and frequencies, to judge a model by
FEWEST_FOR_VALUE, LOGITS_FOR_VALUE = 1000, 2**29  # fewer, but so many, where there are very many categories


@dataclass(frozen=True)
class Effort:
    """What is chosen by the rows to learn from: the size of the network, and how it is trained."""

    width: int
    layers: int
    dropout: float
    batch_size: int
    learning_rate: float
    optimizer: Optimizer
    epochs: int = 40
    """At most; a schedule that ends much later learns the rows by heart before the learning rate comes to rest."""


def effort(rows: int, gpu: bool, seconds: float | None = None) -> Effort:
    """Few rows are learned slowly, with much dropout; many by a network that is as large as the time is enough for.

    >>> effort(300, gpu=False).dropout, effort(60_000, gpu=False).dropout, effort(3_000_000, gpu=True).width
    (0.2, 0.0, 256)
    """
    few, many = rows < FEW, rows >= MANY
    dropout = 0.2 if few else 0.0 if many else 0.1
    pace: tuple[float, Optimizer] = (1e-3, "adam") if rows < VERY_FEW else (5e-3 if few or gpu else 1e-2, "muon")
    if gpu:
        return Effort(256, 4, dropout, 512, *pace) if many else Effort(128, 3, dropout, 128, *pace)
    large = many and seconds is not None and seconds >= LONG
    return Effort(128, 3, dropout, 256, 5e-3, "muon") if large else Effort(64, 2, dropout, 64 if few else 256, *pace)


def learn_autoregressive(
    encoding: Encoding,
    settings: Settings,
    rows: tuple[Batch, Batch],
    plan: Plan,
    began: float,
    stream: Stream | None = None,
    mixture: CategoricalMixture | None = None,
) -> Learned:
    """One causal transformer for every order, which begins as independent columns, or as a mixture of categoricals
    that it then corrects; never worse than those.

    Where there is a stream, it learns from that, and the training rows are some of it to begin with.
    """
    source = Rows(*rows[0]) if stream is None else stream
    chosen = effort(len(source), on_gpu(plan.device), plan.time_budget)
    size = settings.width or chosen.width, settings.layers or chosen.layers, chosen.dropout
    train, validation = (_some(batch, ROWS_FOR_START) for batch in rows)
    order = sorted(range(len(encoding.variables)), key=encoding.variables.__getitem__)
    components = 0 if mixture is None else mixture.components
    wanted = AutoregressiveConfig(*size, components=components, order=tuple(order))
    started = wanted.start(encoding.shape, train, validation)
    model, config, start = started.model, started.config, started.start
    assert isinstance(model, AutoregressiveTable)
    assert isinstance(config, AutoregressiveConfig)
    if mixture is not None and model.density.components is not None:
        model.density.components.take(mixture.log_weight, mixture.log_table)
        start = f"a mixture of {components} products of categoricals"
    few = max(FEWEST_FOR_VALUE, LOGITS_FOR_VALUE // ragged_cells(model.density.counts))
    watched = _some(rows[1], min(few, ROWS_FOR_VALUE))
    before = mean_nll(model, watched, plan.seed)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    tuned = replace(settings.tuned(plan, chosen.learning_rate, chosen.batch_size), optimizer=chosen.optimizer)
    plan = limited_epochs(tuned, len(source), chosen.epochs, FEWEST_STEPS)
    result, history = train_by_plan(model, (source, Rows(*rows[1])), plan, time.perf_counter() - began)
    after = _with_best_orders(model, watched, plan.seed)
    if after > before:  # training looks at some of these rows only
        model.load_state_dict(weights)
        model.orders, after = 1, before
    config = replace(config, orders=model.orders)
    return Learned(model, config, "autoregressive", start, before, after, result, history)


def _with_best_orders(model: AutoregressiveTable, validation: Batch, seed: int) -> float:
    """Score with as many orders as validation rows like, one where they do not care; their mean -log p then."""
    some, best = _some(validation, ROWS_FOR_ORDERS), torch.inf
    for orders in ORDERS:
        model.orders, before = orders, model.orders
        value = mean_nll(model, some, seed)
        if value > best - NOTICEABLE:
            model.orders = before
            break
        best = value
    return mean_nll(model, validation, seed)


def learn_best(encoding: Encoding, settings: Settings, rows: tuple[Batch, Batch], plan: Plan, began: float) -> Learned:
    """The autoregressive density, or a mixture of categoricals where the table is small and validation rows like it.

    Where all columns of a small table are categories, and they have something to do with each other, the density
    begins as that mixture.
    """
    if len(rows[0][0]) > MOST_ROWS:
        return learn_autoregressive(encoding, settings, rows, plan, began)
    mixture = mixture_of_codes(encoding, rows, plan)
    useful = not encoding.numbers and mixture.components >= FEWEST_COMPONENTS
    found = mixture.model if useful and isinstance(mixture.model, CategoricalMixture) else None
    learned = learn_autoregressive(encoding, settings, rows, plan, began, mixture=found)
    value = mean_nll(mixture, _some(rows[1], ROWS_FOR_VALUE), plan.seed)
    if learned.validation <= value - (WORTH if found is not None else 0):
        return learned
    mixture, config = mixture.to(learned.model.device).eval(), CategoricalMixtureConfig((mixture.components,))
    before = learned.initial_validation if found is None else value  # the same but for rounding
    return replace(learned, model=mixture, config=config, kind="mixture", initial_validation=before, validation=value)


def mixture_of_codes(encoding: Encoding, rows: tuple[Batch, Batch], plan: Plan) -> CodedRows:
    """Products of categoricals, numbers by their codes, by expectation maximisation."""
    most = SECONDS_FOR_MIXTURE
    seconds = most if plan.time_budget is None else min(most, SHARE_FOR_MIXTURE * plan.time_budget)
    codes = Codes(encoding, number_distributions(encoding, *rows), CODES)
    train, validation = (codes.codes(*batch) for batch in rows)
    return CodedRows(codes, fit_mixture(codes.counts, train, validation, 0, seconds, plan.seed, plan.progress))


def _some(batch: Batch, most: int) -> Batch:
    """The first rows, which are in random order."""
    return tuple(part[:most] for part in batch)
