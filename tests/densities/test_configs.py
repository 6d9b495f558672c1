"""What configs of vectors build: their options reach every block, and what was saved before them still loads."""

from dataclasses import replace

import pytest
import torch

from tessella.bijections import AFFINE, Coupling, LinearLU, RationalQuadratic
from tessella.configs import changed, from_json
from tessella.densities import (
    DensityConfig,
    DimensionwiseMixtureConfig,
    DisjointMixtureConfig,
    FlatCouplingConfig,
)
from tessella.nets import MLP, ResidualMLP

CONFIGS = {
    "flat": FlatCouplingConfig(blocks=3, width=8),
    "disjoint-mixture": DisjointMixtureConfig(cells=4, blocks=2, component_blocks=3, width=8, embedding=4),
    "dimensionwise-mixture": DimensionwiseMixtureConfig(cells=3, blocks=2, component_blocks=3, width=8),
}
SPLINES = {"transform": "spline", "bins": 4, "network": "residual", "linear": True}


@pytest.fixture(params=CONFIGS, ids=str)
def config(request):
    return CONFIGS[request.param]


def found(module, kind):
    return [part for part in module.modules() if isinstance(part, kind)]


def test_options_reach_every_block(config):
    density = replace(config, **SPLINES).build((3,))
    couplings = found(density, Coupling)
    sequences = 1 if config.kind == "flat" else 2  # of blocks: before the cells and inside them
    assert {type(part.elementwise) for part in couplings} == {RationalQuadratic}
    assert {part.elementwise.bins for part in couplings} == {4}
    assert len(found(density, ResidualMLP)) == len(couplings)
    assert len(found(density, LinearLU)) == len(couplings) - sequences


def test_without_options_the_blocks_are_those_of_the_paper(config):
    density = config.build((3,))
    couplings = found(density, Coupling)
    assert all(part.elementwise is AFFINE for part in couplings)
    assert len(found(density, MLP)) == len(couplings) + (config.kind == "dimensionwise-mixture")  # and the gate
    assert not found(density, LinearLU)


def test_with_splines_draws_come_back_and_training_works(config):
    power = {} if config.kind == "flat" else {"squashing": 8.0}  # with p = 32 a draw may round onto a wall
    density = replace(config, **SPLINES, **power).build((3,))
    x = torch.randn(200, 3) + torch.tensor([4.0, 0.0, -4.0]) * torch.randint(2, (200, 1))
    density.initialize(x)
    before = density.log_prob(x).mean().item()
    optimizer = torch.optim.Adam(density.parameters(), lr=3e-3)
    for _ in range(30):
        optimizer.zero_grad()
        (-density.log_prob(x).mean()).backward()
        optimizer.step()
    assert density.log_prob(x).mean().item() > before
    draws, log_prob = density.sample_and_log_prob((100,))
    torch.testing.assert_close(density.log_prob(draws), log_prob, rtol=1e-6, atol=1e-6)


def test_saved_weights_keep_their_names():
    names = {
        "flat": ["bijection.parts.1.net.body.0.weight", "bijection.parts.3.net.head.bias"],
        "disjoint-mixture": ["bijection.parts.1.net.head.weight", "base.component.bijection.parts.2.net.net.head.bias"],
        "dimensionwise-mixture": ["base.component.bijection.parts.2.net.net.body.2.weight", "base.gate.net.head.bias"],
    }
    for kind, config in CONFIGS.items():
        assert set(names[kind]) <= set(config.build((3,)).state_dict())


def test_what_was_written_before_the_options_still_reads():
    said = {"kind": "flat", "blocks": 12, "width": 128, "layers": 2, "base": "gaussian"}
    assert from_json(DensityConfig, said) == FlatCouplingConfig(12, 128, 2, "gaussian")
    said = {"kind": "dimensionwise-mixture", "cells": 3, "blocks": 0, "component_blocks": 8, "width": 69}
    assert from_json(DensityConfig, said) == DimensionwiseMixtureConfig(3, 0, 8, 69)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("transform", "transform: got 'cubic'; expected one of affine, spline"),
        ("network", "network: got 'cubic'; expected one of mlp, residual"),
    ],
)
def test_what_is_not_known_is_named(config, field, said):
    with pytest.raises(ValueError, match=said):
        changed(config, {field: "cubic"}).build((3,))


def test_dropout_is_of_residual_networks():
    with pytest.raises(ValueError, match=r"dropout: got 0.1 with 'mlp' networks; expected 0, or 'residual'"):
        FlatCouplingConfig(dropout=0.1).build((3,))
    flow = FlatCouplingConfig(blocks=1, network="residual", dropout=0.1).build((3,))
    assert [part.p for part in flow.modules() if isinstance(part, torch.nn.Dropout)] == [0.1]
