"""The flow behind an estimator: how it is built and how it is trained."""

import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tessella.baselines import Independent
from tessella.baselines.classes import fit_classes
from tessella.densities import CoupledModes, Density, Flow, Gaussian, LatentClasses, conditional_flow, token_flow
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
GROUPS, ROWS_FOR_GROUPS = 8, 10_000
"""Tables of so many rows are modelled in groups of columns; smaller ones are learned better from latent classes."""
GROUP_CLASSES, GROUP_NUMBERS, GROUP_LAYERS = 16, 1024, 2  # classes of a group, but not so many probabilities each
SHARE_FOR_CLASSES = 0.2  # of the time budget
VALIDATION_SAMPLES = 4
SAMPLES, GROUPED_SAMPLES = 64, 16  # of the bound that scores; groups of columns have a tighter one


@dataclass(frozen=True)
class Size:
    """What decides how large a model is; its number of latent classes may be left to the validation rows (0)."""

    dim: int
    blocks: int
    width: int
    classes: int = 0
    groups: int = 0
    """Groups of columns, each modelled given those before it; 0: a flow that starts from latent classes."""

    def __post_init__(self) -> None:
        for name, least in {"dim": 2, "blocks": 1, "width": 1, "classes": 0, "groups": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: got {getattr(self, name)}; expected at least {least}")


def build(encoding: Encoding, size: Size) -> SemiDiscrete:
    """The model of an encoding, in single precision whatever torch's default is."""
    with single_precision():
        dequantizer, modes = _dequantizer(encoding, size), mode_counts(encoding.counts, len(encoding.numbers))
        if size.groups:
            return SemiDiscrete(dequantizer, _grouped(encoding, size, modes), 1, 1)  # the ELBO is close to tight
        base = LatentClasses(modes, size.dim, size.classes)
        density = token_flow(base, size.blocks, size.width, 1, norm=False)
    return SemiDiscrete(dequantizer, density, TRAIN_SAMPLES, VALIDATION_SAMPLES)


def _grouped(encoding: Encoding, size: Size, modes: tuple[int, ...]) -> Density:
    """Coupled modes; a flow in front of them refines the law of numbers, and categories alone need none."""
    groups, classes = min(size.groups, len(modes)), max(1, min(GROUP_CLASSES, GROUP_NUMBERS // max(modes)))
    base = CoupledModes(modes, size.dim, groups, classes, 2 * size.width, GROUP_LAYERS)
    return token_flow(base, size.blocks, size.width, 1, norm=False) if encoding.numbers else base


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
    """A model that already is a simple one: cells apart, narrow noise, a mode of the base in each.

    With groups of columns it begins as independent columns, without them as a mixture of latent classes.
    """
    arranged = _dequantizer(encoding, size)
    arranged.arrange(rows[0], encoding.ordinal)
    assert isinstance(arranged.cells, VoronoiCells)
    modes = modes_of(arranged.cells, rows[0][:, : len(encoding.counts)].long(), len(encoding.numbers))
    found, watched = (arranged.modes_of_rows(modes, part) for part in rows)
    if not size.groups:
        budget = None if plan.time_budget is None else SHARE_FOR_CLASSES * plan.time_budget
        classes = fit_classes(modes.counts, found, watched, size.classes, budget, plan.seed, plan.progress)
        size = replace(size, classes=classes.components)
    model = build(encoding, size)
    model.dequantizer.load_state_dict(arranged.state_dict())
    base = base_of(model)
    if isinstance(base, CoupledModes):
        base.start(Independent(modes.counts).log_frequencies(found), modes.centre, modes.scale)
    else:
        base.start(classes.log_weight, classes.log_table, modes.centre, modes.scale)
    return model


def base_of(model: SemiDiscrete) -> LatentClasses | CoupledModes:
    """Where the density of a model that `build` made starts from."""
    base = model.density.base if isinstance(model.density, Flow) else model.density
    assert isinstance(base, LatentClasses | CoupledModes)
    return base


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
