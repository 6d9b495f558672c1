"""The flow behind an estimator: how it is built and how it is trained."""

import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tessella.baselines.classes import fit_classes
from tessella.densities import Flow, Gaussian, LatentClasses, conditional_flow, token_flow
from tessella.dequantizers.cells import VoronoiCells
from tessella.dequantizers.mixed import MixedContext, MixedDequantizer
from tessella.dequantizers.modes import mode_counts, modes_of
from tessella.estimators.encoding import Encoding
from tessella.estimators.learning import Plan, single_precision, train_by_plan
from tessella.models import SemiDiscrete
from tessella.training import FitResult
from tessella.training.randomness import derived_seed, seed_noise, undisturbed_noise

CONTEXT = 32
NOISE_BLOCKS = 2
TRAIN_SAMPLES = 4
SHARE_FOR_CLASSES = 0.2  # of the time budget
VALIDATION_SAMPLES = 4


@dataclass(frozen=True)
class Size:
    """What decides how large a model is; its number of latent classes may be left to the validation rows (0)."""

    dim: int
    blocks: int
    width: int
    classes: int = 0

    def __post_init__(self) -> None:
        for name, least in {"dim": 2, "blocks": 1, "width": 1, "classes": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: got {getattr(self, name)}; expected at least {least}")


def build(encoding: Encoding, size: Size) -> SemiDiscrete:
    """The model of an encoding, in single precision whatever torch's default is."""
    with single_precision():
        dequantizer = _dequantizer(encoding, size)
        modes = mode_counts(encoding.counts, len(encoding.numbers))
        base = LatentClasses(modes, size.dim, size.classes)
        density = token_flow(base, size.blocks, size.width, 1, norm=False)
    return SemiDiscrete(dequantizer, density, TRAIN_SAMPLES, VALIDATION_SAMPLES)


def _dequantizer(encoding: Encoding, size: Size) -> MixedDequantizer:
    counts, numbers = encoding.counts, len(encoding.numbers)
    cells = VoronoiCells(counts, size.dim, squashing="root")  # which leaves the middle of a cell as it is
    base = Gaussian((len(counts) + numbers, size.dim))
    noise = conditional_flow(base, NOISE_BLOCKS, size.width, 1, CONTEXT, tokens=True)
    context = MixedContext(counts, numbers, CONTEXT, size.width)
    return MixedDequantizer(cells, noise, context, encoding.unit, encoding.indicators)


def learn(
    encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan
) -> tuple[SemiDiscrete, FitResult, list[dict[str, Any]]]:
    """Build, start and train on (training, validation) rows; the model, how it went, and its curve."""
    started = time.perf_counter()
    with single_precision(), undisturbed_noise(torch.device("cpu")):
        torch.manual_seed(derived_seed(plan.seed, "model"))
        model = _started(encoding, size, rows, plan)
        result, history = train_by_plan(model, rows, plan, time.perf_counter() - started)
    return model, result, history


def _started(encoding: Encoding, size: Size, rows: tuple[Tensor, Tensor], plan: Plan) -> SemiDiscrete:
    """A model that already is a mixture of latent classes: cells apart, narrow noise, a mode of the base in each."""
    arranged = _dequantizer(encoding, size)
    arranged.arrange(rows[0], encoding.ordinal)
    assert isinstance(arranged.cells, VoronoiCells)
    modes = modes_of(arranged.cells, rows[0][:, : len(encoding.counts)].long(), len(encoding.numbers))
    found, watched = (arranged.modes_of_rows(modes, part) for part in rows)
    budget = None if plan.time_budget is None else SHARE_FOR_CLASSES * plan.time_budget
    classes = fit_classes(modes.counts, found, watched, size.classes, budget, plan.seed, plan.progress)
    model = build(encoding, replace(size, classes=classes.components))
    model.dequantizer.load_state_dict(arranged.state_dict())
    latent_classes(model).start(classes.log_weight, classes.log_table, modes.centre, modes.scale)
    return model


def latent_classes(model: SemiDiscrete) -> LatentClasses:
    """The base of a model that `build` made."""
    assert isinstance(model.density, Flow)
    assert isinstance(model.density.base, LatentClasses)
    return model.density.base


@torch.no_grad()
def log_likelihood(model: SemiDiscrete, rows: Tensor, samples: int, seed: int) -> Tensor:
    """The importance-weighted bound of every row in nats, (B) on the CPU; the same noise every time."""
    with undisturbed_noise(model.device):
        seed_noise(derived_seed(seed, "score"), model.device)
        bound = model.log_prob(rows.to(model.device), samples).double().cpu()
    bad = (~bound.isfinite()).nonzero().flatten().tolist()
    if bad:
        raise ArithmeticError(f"log-likelihood: {len(bad)} of {len(rows)} rows are not finite (first: rows {bad[:5]})")
    return bound
