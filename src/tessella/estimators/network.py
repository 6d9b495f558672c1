"""The model behind `TabularFlow`: what it may be, how it is built again, how it scores."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from tessella.baselines import BlockAutoregressiveMixture, CategoricalMixture
from tessella.contracts import Batch
from tessella.data import Encoding, TableShape
from tessella.densities import CellMixture, Flow
from tessella.estimators.coding import CodedRows, Codes
from tessella.estimators.learning import single_precision
from tessella.models import AutoregressiveTable, SemiDiscrete, TableConfig
from tessella.models.restoring import DamagedModelError, sound
from tessella.training import FitResult
from tessella.training.randomness import derived_seed, fork_rng, seed_noise

SAMPLES = 64  # of the bound that scores

Kind = Literal["autoregressive", "mixture", "blocks", "coupling"]
"""autoregressive: one column after another in any order, exactly; mixture: of products of categoricals, exactly, where
validation rows preferred it; blocks: groups of columns, each given those before it by a mixture, exactly; coupling: a
flow through cells that began as a mixture."""
Model = AutoregressiveTable | CodedRows | SemiDiscrete


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


def build(config: TableConfig, encoding: Encoding, codes: Codes | None) -> Model:
    """The model of an encoding, in single precision whatever torch's default is: what saved weights are loaded into.

    Args:
        config: of the model; of codes, where they are given.
        encoding: of the rows.
        codes: of the rows, for models that score them; None for those that take rows as they are.
    """
    with single_precision():
        model = config.build(encoding.shape if codes is None else TableShape(codes.counts))
    if codes is None:
        assert isinstance(model, SemiDiscrete | AutoregressiveTable)
        return model
    assert isinstance(model, BlockAutoregressiveMixture | CategoricalMixture)
    return CodedRows(codes, model)


def components_of(model: Model) -> int:
    """Of the mixture that a model is, corrects or began as, or of each group of columns; 0 where there is none."""
    if isinstance(model, AutoregressiveTable):
        return model.density.net.evidence
    if isinstance(model, CodedRows):
        return model.components
    assert isinstance(model.density, Flow)
    assert isinstance(model.density.base, CellMixture)
    return len(model.density.base.log_weight)


def mean_nll(model: Model, batch: Batch, seed: int) -> float:
    """Mean of -log P over rows, in nats."""
    return -float(log_likelihood(model, batch, SAMPLES, seed).mean())


@torch.no_grad()
def log_likelihood(model: Model, batch: Batch, samples: int, seed: int) -> Tensor:
    """log P of every row in nats, or its importance-weighted bound with the same noise every time: (B) on the CPU."""
    with fork_rng(model.device), sound("log-likelihood"):
        seed_noise(derived_seed(seed, "score"), model.device)
        bound = model.log_prob(*(part.to(model.device) for part in batch), samples=samples).double().cpu()
    bad = (~bound.isfinite()).nonzero().flatten().tolist()
    if bad:
        raise DamagedModelError(
            f"log-likelihood: {len(bad)} of {len(bound)} rows are not finite (first: rows {bad[:5]})"
        )
    return bound
