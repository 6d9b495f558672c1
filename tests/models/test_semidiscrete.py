"""The bounds of `SemiDiscrete`: valid, tighter with samples, equal to the exact value where it can be had."""

from dataclasses import replace
from math import log

import pytest
import torch

from tessella.data.tables.shape import TableShape
from tessella.densities import (
    CellCouplingConfig,
    CouplingConfig,
    DensityConfig,
    FlatCouplingConfig,
    GroupCouplingConfig,
    SplineConfig,
)
from tessella.dequantizers import CellsConfig, ConditionalNoise
from tessella.models import FlowConfig, SemiDiscrete
from tessella.models import bound as module

COUNTS = (3, 2)
DENSITIES: dict[str, DensityConfig] = {
    "coupling": CouplingConfig(blocks=2, width=8, layers=1),
    "logistic coupling": CouplingConfig(blocks=2, width=8, layers=1, logistics=3),
    "groups": GroupCouplingConfig(groups=2, width=8, layers=1),
    "cells": CellCouplingConfig(groups=2, components=3, width=8, layers=1, further=1),
    "flat": FlatCouplingConfig(blocks=2, width=8, layers=1),
    "spline": SplineConfig(transforms=2, width=8, layers=1),
}
# With Student's t weights p / q stay bounded at the walls, so few samples tell the truth.
NOISE = ConditionalNoise(width=8, layers=1, base="student", context=4)


def small(cells: str = "voronoi", density: str = "coupling", train_samples: int = 1, **geometry) -> SemiDiscrete:
    config = FlowConfig(CellsConfig.named(cells, **{"dim": 2} | geometry), NOISE, DENSITIES[density])
    return replace(config, train_samples=train_samples).build(TableShape(COUNTS))


ALL_ROWS = torch.cartesian_prod(torch.arange(3), torch.arange(2))


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("cells", ["voronoi", "laguerre", "simplex"])
@torch.no_grad()
def test_bounds_increase_towards_the_frequency_of_the_models_own_samples(cells, density):
    """P(c) by counting samples; E IW-5 <= E IW-20 <= log P."""
    model = small(cells, density)
    (draws,) = model.sample(40_000)
    counts = torch.stack([(draws == row).all(-1).double().mean() for row in ALL_ROWS])
    few = model.log_weights(ALL_ROWS, samples=5 * 300).view(300, 5, -1).logsumexp(1).mean(0) - log(5)
    more = model.log_weights(ALL_ROWS, samples=20 * 300).view(300, 20, -1).logsumexp(1).mean(0) - log(20)
    many = model.log_prob(ALL_ROWS, samples=20_000)
    assert few.mean() < more.mean() < many.mean() + 0.02
    torch.testing.assert_close(many.exp(), counts, atol=0.04, rtol=0.0)


def test_chunks_change_nothing_but_the_order_of_work(monkeypatch):
    model = small()
    monkeypatch.setattr(module, "POINTS_AT_ONCE", {"cpu": 7})
    weights = model.chunked_log_weights(ALL_ROWS, samples=20)
    assert sum(part.shape[1] for part in weights) == len(ALL_ROWS)
    assert all(part.shape[0] == 20 for part in weights)
    assert model.log_prob(ALL_ROWS, samples=20).shape == (6,)
    assert model.sample(23)[0].shape == (23, 2)


def test_a_gradient_reaches_every_parameter():
    model = small("laguerre", box=3.0, train_samples=4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.loss(ALL_ROWS.repeat(40, 1)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    ("cells", "density"),
    [*((cells, "coupling") for cells in CellsConfig.kinds), *(("voronoi", one) for one in ("flat", "groups", "cells"))],
)
def test_the_training_step_is_one_graph(cells, density):
    torch.compiler.reset()
    model = small(cells, density, train_samples=2, dim=4)
    compiled = torch.compile(model.loss, fullgraph=True, backend="aot_eager")
    torch.manual_seed(1)
    eager = model.loss(ALL_ROWS)
    torch.manual_seed(1)
    torch.testing.assert_close(compiled(ALL_ROWS), eager)


def test_learns_a_small_table():
    """Two variables that always agree: the bound comes close to ln 2, which no independent model can."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float32)
    rows = torch.randint(2, (512, 1)).expand(-1, 2).contiguous()
    noise = ConditionalNoise(width=16, layers=1, context=8)
    config = FlowConfig(CellsConfig.named("voronoi", dim=2), noise, CouplingConfig(blocks=4, width=16, layers=1))
    model = config.build(TableShape((2, 2)))
    model.initialize(rows)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(250):
        optimizer.zero_grad()
        model.loss(rows).backward()
        optimizer.step()
    nll = -model.log_prob(torch.tensor([[0, 0], [1, 1]]), samples=200).mean().item()
    assert 0.69 - 0.02 < nll < 0.85
