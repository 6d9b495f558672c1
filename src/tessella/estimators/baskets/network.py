"""The model behind `SetFlow`: what it may be, how it is built again, how it scores and what it says comes next."""

from typing import Literal, get_args

import torch
from torch import Tensor

from tessella.baselines.sets import BasketMixture, ItemTransformer
from tessella.data import PaddedSets, SetShape
from tessella.dequantizers import VoronoiCells
from tessella.estimators.learning import single_precision
from tessella.models import SemiDiscreteSets, SetConfig
from tessella.models.restoring import DamagedModelError, sound
from tessella.training.randomness import derived_seed, fork_rng, seed_noise

SAMPLES = 24  # of a bound: orders of a basket's items, or points in their cells
NEXT_SAMPLES, NEXT_POINTS = 4, 2**12  # of a flow, at least for each item that may come next, and about for all
SETS_AT_ONCE = 2**12
ROUNDING = 1e-6

ModelKind = Literal["independent", "mixture", "transformer", "coupling"]
"""independent: items, given their number; mixture: kinds of baskets, each of independent items; transformer: one item
after another, in every order; coupling: a flow of points in the items' cells. The first two are exact, and counted; the
others are learned."""
LEARNED: tuple[ModelKind, ...] = ("transformer", "coupling")
KINDS: tuple[ModelKind, ...] = get_args(ModelKind)
BasketModel = BasketMixture | ItemTransformer | SemiDiscreteSets


def build(kind: ModelKind, shape: SetShape, components: int, config: SetConfig | None) -> BasketModel:
    """The model that saved weights are loaded into; a config is that of a model that was learned."""
    if config is None and kind not in LEARNED:
        return BasketMixture(shape, components)
    if config is None:
        raise ValueError(f"model: got no config of a {kind}; expected one")
    with single_precision():
        model = config.build(shape)
    expected = {"transformer": ItemTransformer, "coupling": SemiDiscreteSets}.get(kind)
    if expected is None or not isinstance(model, ItemTransformer | SemiDiscreteSets) or type(model) is not expected:
        raise ValueError(f"model: got the config of a {type(model).__name__}; expected that of a {kind}")
    return model


def check(model: BasketModel) -> None:
    """What was loaded has probabilities that add up to 1."""
    if isinstance(model, BasketMixture):
        model.check()
    elif not abs(float(model.sizes.log_share.logsumexp(0))) < ROUNDING:
        raise ValueError("sizes: got probabilities that do not add up to 1; expected those of a fitted model")


def device_of(model: BasketModel) -> torch.device:
    """Where the weights are."""
    return model.log_weight.device if isinstance(model, BasketMixture) else model.sizes.log_share.device


@torch.no_grad()
def log_likelihood(model: BasketModel, sets: PaddedSets, samples: int, seed: int) -> Tensor:
    """log P of every basket in nats, or a lower bound with the same noise every time, whatever the order: (B)."""
    device = device_of(model)
    sets = sets.to(device)
    with sound("log-likelihood"):
        if isinstance(model, BasketMixture):
            found = model.log_prob_flat(sets.items, sets.offsets)
        else:
            places, sets = torch.arange(len(sets)), _in_order(sets, model.shape)
            with fork_rng(device):
                seed_noise(derived_seed(seed, "score"), device)
                batches = [sets.batch(part) for part in places.split(SETS_AT_ONCE)]
                found = torch.cat([model.log_prob(items, mask, samples=samples) for items, mask in batches])
    found = found.double().cpu()
    if not bool(found.isfinite().all()):
        raise DamagedModelError(f"log-likelihood: {int((~found.isfinite()).sum())} of {len(found)} are not finite")
    return found


def mean_nll(model: BasketModel, sets: PaddedSets, samples: int, seed: int) -> float:
    """Mean of -log P over baskets, in nats."""
    return -float(log_likelihood(model, sets, samples, seed).mean())


@torch.no_grad()
def log_next(model: BasketModel, items: Tensor, samples: int, seed: int) -> Tensor:
    """log P(k | these items, and there is one more), (K): -inf for the items themselves.

    A transformer says what comes after them, whatever their order; exact, of up to 4 items, else from so many orders. A
    flow compares bounds of all baskets that it could become.
    """
    device = device_of(model)
    items = items.to(device).sort().values
    with fork_rng(device), sound("what comes next"):
        seed_noise(derived_seed(seed, "next"), device)
        if isinstance(model, BasketMixture):
            found = model.log_next(items)
        else:
            few = max(NEXT_SAMPLES, min(samples, NEXT_POINTS // model.shape.items))
            found = model.log_next(items, samples if isinstance(model, ItemTransformer) else few)
    if bool(found.isnan().any()):
        raise DamagedModelError("what comes next: got probabilities that are not finite")
    return found.double().cpu()


@torch.no_grad()
def vectors(model: BasketModel) -> Tensor:
    """Of each item: square roots of P(kind | item); what the transformer is told; anchors of the cells."""
    if isinstance(model, BasketMixture):
        return model.kinds_of_items().sqrt()
    if isinstance(model, ItemTransformer):
        return model.embed.detach()
    cells = model.dequantizer.cells
    assert isinstance(cells, VoronoiCells)
    return cells.map.tessellation.anchors.detach().flatten(0, -2)


def components_of(model: BasketModel) -> int:
    """Kinds of baskets; 0 of a model that is learned."""
    return model.components if isinstance(model, BasketMixture) else 0


def _in_order(sets: PaddedSets, shape: SetShape) -> PaddedSets:
    """The same, items of each ascending, padded as the shape is."""
    owner = torch.arange(len(sets), device=sets.items.device).repeat_interleave(sets.offsets.diff())
    order = (owner * shape.items + sets.items).argsort()
    return PaddedSets(sets.items[order], sets.offsets, size=shape.most)
