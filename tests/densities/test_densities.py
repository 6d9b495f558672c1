"""Laws of every density: mass one, samples that agree with log-probabilities."""

import pytest
import torch
import zuko

from tessella.bijections import RationalQuadratic
from tessella.densities import (
    Ball,
    BlockParts,
    CellMixture,
    Flow,
    Gaussian,
    GaussianMixture,
    Logistic,
    StudentT,
    Symmetrized,
    ZukoDensity,
    conditional_flow,
    flat_flow,
    group_flow,
    token_flow,
)
from tessella.dequantizers import VoronoiConfig
from tessella.models.texts import ConditionalLogistics
from tessella.nets import ResidualMLP

QUARTER = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
TURNS = torch.stack([torch.linalg.matrix_power(QUARTER, turns) for turns in range(4)])
SPLINES = BlockParts(RationalQuadratic(4), ResidualMLP, linear=True)


def perturbed(density):
    with torch.no_grad():
        for parameter in density.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return density


# name: (density over a 2-D event, context)
DENSITIES = {
    "gaussian": lambda: (Gaussian((1, 2)), None),
    "student": lambda: (StudentT((1, 2), degrees=5), None),
    "student-real-degrees": lambda: (StudentT((1, 2), degrees=5.5), None),
    "ball": lambda: (Ball((1, 2)), None),
    "ball-power": lambda: (Ball((1, 2), 8.0), None),
    "logistic": lambda: (Logistic((1, 2)), None),
    "flat": lambda: (perturbed(flat_flow(Gaussian((2, 1)), 4, 16)), None),
    "flat-by-splines": lambda: (perturbed(flat_flow(Gaussian((2, 1)), 4, 16, parts=SPLINES)), None),
    "token": lambda: (perturbed(token_flow(Gaussian((1, 2)), 3, 16)), None),
    "token-linear": lambda: (perturbed(token_flow(Gaussian((1, 2)), 2, 4, 1, linear=True)), None),
    "token-by-mixtures": lambda: (perturbed(token_flow(Gaussian((1, 2)), 2, 4, 1, logistics=3)), None),
    "groups": lambda: (perturbed(group_flow(Gaussian((2, 1)), 2, 2, 8, 1, logistics=2)), None),
    "groups-of-one-variable-each": lambda: (perturbed(group_flow(Gaussian((2, 1)), 1, 2, 8, 1)), None),
    "conditional-token": lambda: (
        perturbed(conditional_flow(Gaussian((1, 2)), 2, 16, 1, context=3, tokens=True)),
        torch.ones(1, 3),
    ),
    "conditional-flat": lambda: (
        perturbed(conditional_flow(StudentT((1, 2), 9), 2, 16, 1, context=3, tokens=False)),
        torch.ones(3),
    ),
    "logistics-in-cells": lambda: (
        perturbed(ConditionalLogistics(VoronoiConfig(2, shared=True).build((4,)), context=3, blocks=2, width=8)),
        torch.ones(3),
    ),
    "cell-mixture": lambda: (perturbed(CellMixture((3,), 2, components=4)), None),
    "gaussian-mixture": lambda: (perturbed(GaussianMixture(3, 2)), None),
    "symmetrized": lambda: (Symmetrized(perturbed(flat_flow(Gaussian((2,)), 4, 16)), TURNS), None),
    "zuko-spline": lambda: (ZukoDensity(zuko.flows.NSF(2, transforms=2, hidden_features=[16]), (1, 2)), None),
}


@pytest.fixture(params=DENSITIES, ids=str)
def case(request):
    return DENSITIES[request.param]()


def _in_a_square(p: torch.Tensor) -> torch.Tensor:
    return ((p > 0.3) & (p < 2)).all(-1)


def _in_a_band(p: torch.Tensor) -> torch.Tensor:
    return (p[:, 1] < -0.2) & (p.abs() < 5).all(-1)


def _in_a_disc(p: torch.Tensor) -> torch.Tensor:
    return p.square().sum(-1) < 1


def for_points(context, points: int):
    return None if context is None else context.expand(points, *context.shape)


@torch.no_grad()
def test_mass_is_one_and_samples_follow_the_density(case):
    """Quadrature on a wide grid; then the share of samples in each quadrant against the mass there."""
    density, context = case
    steps, side = 400, 40
    axis = (torch.arange(steps) + 0.5) / steps * side - side / 2
    x = torch.cartesian_prod(axis, axis)
    mass = density.log_prob(x.view(-1, *density.event_shape), for_points(context, len(x))).exp() * (side / steps) ** 2
    heavy = isinstance(density, Ball)  # much of it lies beyond any grid; the regions below do not
    assert heavy or mass.sum().item() == pytest.approx(1.0, abs=3e-3)
    draws = density.sample((20_000,), for_points(context, 20_000)).reshape(-1, 2)
    for region in (_in_a_square, _in_a_band, _in_a_disc):
        assert region(draws).double().mean().item() == pytest.approx(mass[region(x)].sum().item(), abs=0.02)


def test_sample_and_log_prob_agree(case):
    density, context = case
    x, log_prob = density.sample_and_log_prob((50,), for_points(context, 50))
    assert x.shape == (50, *density.event_shape)
    torch.testing.assert_close(log_prob, density.log_prob(x, for_points(context, 50)))


def test_initialize_whitens_what_the_flow_sees():
    flow = token_flow(Gaussian((3, 2)), 2, 8)
    x = torch.randn(400, 3, 2) * 5 + 20
    assert isinstance(flow, Flow)
    flow.initialize(x)
    u, _ = flow.bijection.forward_and_ladj(x)
    torch.testing.assert_close(u.mean(0), torch.zeros(3, 2), atol=1e-6, rtol=0.0)
    torch.testing.assert_close(u.std(0, correction=0), torch.ones(3, 2), atol=1e-6, rtol=0.0)


def test_couplings_refuse_what_they_cannot_divide():
    with pytest.raises(ValueError, match="dim: got 1; expected at least 2 for token coupling"):
        token_flow(Gaussian((3, 1)), 2, 8)
    with pytest.raises(ValueError, match="groups: got 4 of 3 variables; expected at least 1, none of them empty"):
        group_flow(Gaussian((3, 2)), 1, 4, 8)


def test_symmetries_leave_a_symmetrized_density_as_it_is():
    flow = perturbed(flat_flow(Gaussian((2,)), 4, 16))
    density, x = Symmetrized(flow, TURNS), torch.randn(20, 2)
    views = torch.stack([flow.log_prob(x @ turn.T) for turn in TURNS])
    torch.testing.assert_close(density.log_prob(x), views.exp().mean(0).log())
    torch.testing.assert_close(density.log_prob(x @ QUARTER.T), density.log_prob(x))
    assert (density.log_prob(x) >= views.mean(0)).all()
    assert not torch.allclose(flow.log_prob(x @ QUARTER.T), flow.log_prob(x), atol=0.1)


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (torch.eye(3)[None], r"maps: got shape \(1, 3, 3\); expected \(S, D, D\) = \(S, 2, 2\), S >= 1"),
        (torch.eye(2), r"maps: got shape \(2, 2\)"),
        (torch.stack([torch.eye(2), 2 * torch.eye(2)]), r"maps: got determinants .*4\.0.*; expected 1"),
    ],
    ids=["another dimension", "no maps", "another volume"],
)
def test_maps_that_are_no_symmetries_are_refused(maps, message):
    with pytest.raises(ValueError, match=message):
        Symmetrized(Gaussian((2,)), maps)
