"""The exact density of `TabularFlow`: one column after another, in any order; its size, and how it is trained."""

import time
from dataclasses import dataclass, replace

import torch

from tessella.baselines.choosing import MOST_ROWS, fit_mixture
from tessella.contracts import Batch
from tessella.data import Encoding, Rows
from tessella.estimators.coding import CodedRows, Codes, number_distributions
from tessella.estimators.learning import Plan, limited_epochs, on_gpu, train_by_plan
from tessella.estimators.network import Learned, mean_nll
from tessella.estimators.settings import Settings
from tessella.models import AutoregressiveConfig, AutoregressiveTable, CategoricalMixtureConfig

CODES = 16  # of a number, about, in a mixture
SHARE_FOR_MIXTURE, SECONDS_FOR_MIXTURE = 0.1, 20.0  # of the time budget; at most
FEW, MANY, FEWEST_STEPS = 10_000, 50_000, 600
ORDERS, ROWS_FOR_ORDERS = (1, 4, 16), 1000  # numbers of orders tried, as long as more are better
NOTICEABLE = 5e-3  # nats per row that more orders must bring


@dataclass(frozen=True)
class Effort:
    """What is chosen by the rows to learn from: the size of the network, and how it is trained."""

    width: int
    layers: int
    dropout: float
    batch_size: int
    learning_rate: float
    epochs: int = 40
    """At most; a schedule that ends much later learns the rows by heart before the learning rate comes to rest."""


def effort(rows: int, gpu: bool) -> Effort:
    """Few rows are learned slowly, with much dropout; many by a network that is as large as minutes are enough for.

    >>> effort(300, gpu=False).dropout, effort(60_000, gpu=False).dropout, effort(3_000_000, gpu=True).width
    (0.2, 0.0, 256)
    """
    few, many = rows < FEW, rows >= MANY
    dropout, rate = 0.2 if few else 0.0 if many else 0.1, 1e-3 if few else 3e-3
    if gpu:
        return Effort(256, 4, dropout, 512, 2e-3) if many else Effort(128, 3, dropout, 128, min(rate, 2e-3))
    return Effort(64, 2, dropout, 64, rate)


def learn_autoregressive(
    encoding: Encoding, settings: Settings, rows: tuple[Batch, Batch], plan: Plan, began: float
) -> Learned:
    """One causal transformer for every order, which begins as independent columns; never worse than those."""
    chosen = effort(len(rows[0][0]), on_gpu(plan.device))
    size = settings.width or chosen.width, settings.layers or chosen.layers, chosen.dropout
    started = AutoregressiveConfig(*size).start(encoding.shape, *rows)
    model, config = started.model, started.config
    assert isinstance(model, AutoregressiveTable)
    assert isinstance(config, AutoregressiveConfig)
    before = mean_nll(model, rows[1], plan.seed)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    tuned = settings.tuned(plan, chosen.learning_rate, chosen.batch_size)
    plan = limited_epochs(tuned, len(rows[0][0]), chosen.epochs, FEWEST_STEPS)
    result, history = train_by_plan(model, (Rows(*rows[0]), Rows(*rows[1])), plan, time.perf_counter() - began)
    after = _with_best_orders(model, rows[1], plan.seed)
    if after > before:  # training looks at some of these rows only
        model.load_state_dict(weights)
        model.orders, after = 1, before
    config = replace(config, orders=model.orders)
    return Learned(model, config, "autoregressive", started.start, before, after, result, history)


def _with_best_orders(model: AutoregressiveTable, validation: Batch, seed: int) -> float:
    """Score with as many orders as validation rows like, one where they do not care; their mean -log p then."""
    some = tuple(part[:ROWS_FOR_ORDERS] for part in validation)
    best = torch.inf
    for orders in ORDERS:
        model.orders, before = orders, model.orders
        value = mean_nll(model, some, seed)
        if value > best - NOTICEABLE:
            model.orders = before
            break
        best = value
    return mean_nll(model, validation, seed)


def learn_best(encoding: Encoding, settings: Settings, rows: tuple[Batch, Batch], plan: Plan, began: float) -> Learned:
    """The autoregressive density, or a mixture of categoricals where the table is small and validation rows like it."""
    if len(rows[0][0]) > MOST_ROWS:
        return learn_autoregressive(encoding, settings, rows, plan, began)
    mixture = _mixture(encoding, rows, plan)
    learned = learn_autoregressive(encoding, settings, rows, plan, began)
    value = mean_nll(mixture, rows[1], plan.seed)
    if learned.validation <= value:
        return learned
    mixture, config = mixture.to(learned.model.device).eval(), CategoricalMixtureConfig((mixture.components,))
    return replace(learned, model=mixture, config=config, kind="mixture", validation=value)


def _mixture(encoding: Encoding, rows: tuple[Batch, Batch], plan: Plan) -> CodedRows:
    """Products of categoricals, numbers by their codes, by expectation maximisation."""
    most = SECONDS_FOR_MIXTURE
    seconds = most if plan.time_budget is None else min(most, SHARE_FOR_MIXTURE * plan.time_budget)
    codes = Codes(encoding, number_distributions(encoding, *rows), CODES)
    train, validation = (codes.codes(*batch) for batch in rows)
    shuffled = train[torch.randperm(len(train))]
    return CodedRows(codes, fit_mixture(codes.counts, shuffled, validation, 0, seconds, plan.seed, plan.progress))
