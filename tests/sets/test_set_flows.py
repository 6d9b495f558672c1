"""Flows of sets: permuted as their items are, with exact determinants, and bounds below what is true."""

import pytest
import torch
from sets_for_tests import universe
from torch.nn.functional import pad

from tessella.bijections import ContinuousFlow, ItemNetwork, SolverError
from tessella.bijections.continuous import exact_divergence, hutchinson_divergence
from tessella.data import SetShape
from tessella.densities.sets import (
    ContinuousSetConfig,
    CouplingSetConfig,
    GaussianBaseConfig,
    ItemMixture,
    KindsOfSets,
    MixtureBaseConfig,
)
from tessella.dequantizers import BinaryConfig, SimplexConfig, VoronoiConfig
from tessella.evaluation import sandwich_audit
from tessella.evaluation.mass import Grid, total_mass
from tessella.models import SetFlowConfig
from tessella.nets import Transformer
from tessella.paper.itemsets.hutchinson import compare_traces, estimated_traces

pytest.importorskip("torchdiffeq")

SHAPES = [SetShape(5, 3, 3), SetShape(5, 1, 3)]
MIXTURE = MixtureBaseConfig(components=2, rank=2)
CELLS = VoronoiConfig(dim=2, shared=True, spread=0.2)
DENSITIES = {
    "base": CouplingSetConfig(base=MIXTURE, blocks=0),
    "coupling": CouplingSetConfig(base=MIXTURE, blocks=2, width=8),
    "logistics": CouplingSetConfig(base=GaussianBaseConfig(), blocks=2, width=8, logistics=2, linear=True),
    "continuous": ContinuousSetConfig(base=MIXTURE, flows=1, width=8, layers=1, tolerance=1e-3),
}


def made(config: SetFlowConfig, shape: SetShape, change: float = 0.1):
    """A model at its start, and then somewhere else."""
    torch.manual_seed(0)
    items, mask = universe(shape)
    model = config.start(shape, items, mask).eval()
    with torch.no_grad():
        for parameter in model.density.parameters():
            parameter.add_(change * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("shape", SHAPES, ids=["one size", "sizes"])
@pytest.mark.parametrize("name", DENSITIES)
def test_densities_and_noise_know_no_order(name, shape):
    model = made(SetFlowConfig(CELLS, DENSITIES[name], noise_width=8), shape).double()
    items, mask = universe(shape)
    x, _ = model.dequantizer.dequantize(items, mask)
    order = torch.tensor([2, 0, 1])
    density, noise = model._log_density(x, mask), model.dequantizer.log_prob(x, items, mask)
    torch.testing.assert_close(model._log_density(x[:, order], mask[:, order]), density, rtol=1e-4, atol=1e-4)
    turned = model.dequantizer.log_prob(x[:, order], items[:, order], mask[:, order])
    torch.testing.assert_close(turned, noise, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", DENSITIES)
def test_padding_changes_nothing(name):
    model = made(SetFlowConfig(CELLS, DENSITIES[name], noise_width=8), SHAPES[1]).double()
    items, mask = universe(SetShape(5, 2, 2))
    x, _ = model.dequantizer.dequantize(pad(items, (0, 1)), pad(mask, (0, 1)))
    exists = pad(mask, (0, 1))[..., None].double()
    elsewhere = torch.where(exists > 0, x, 7.0)
    torch.testing.assert_close(model.density.log_prob(elsewhere, exists), model.density.log_prob(x, exists))
    with pytest.raises(ValueError, match="expected 3 columns"):
        model.log_prob(items, mask)


@pytest.mark.parametrize("shape", SHAPES, ids=["one size", "sizes"])
@pytest.mark.parametrize("cells", [CELLS, BinaryConfig(), SimplexConfig()], ids=lambda cells: cells.kind)
def test_the_mass_of_all_sets_is_at_most_one(cells, shape):
    density = DENSITIES["coupling" if cells is CELLS else "logistics"]
    model = made(SetFlowConfig(cells, density, noise_width=8), shape, change=0.02)
    grid = Grid(universe(shape), torch.ones(len(universe(shape)[0]), dtype=torch.float64))
    total, error = total_mass(model, grid, samples=400)
    assert 0.05 < total < 1 + 4 * error + 1e-3


def test_at_its_start_the_bound_is_the_mixture_itself():
    """Narrow noise in cells, a bump in each: the weights do not vary, no mass is lost but what may repeat."""
    shape = SHAPES[1]
    items, mask = universe(shape)
    model = made(SetFlowConfig(CELLS, DENSITIES["coupling"], noise_width=8), shape, change=0.0)
    weights = model.log_weights(items, mask, samples=8).detach()
    assert float(weights.std(0).max()) < 0.01
    assert float(weights[0].exp().sum()) == pytest.approx(1, abs=5e-3)
    assert sandwich_audit(model, rows=64, samples=20).passed


def test_every_parameter_learns():
    for name in ("coupling", "continuous"):
        model = made(SetFlowConfig(CELLS, DENSITIES[name], noise_width=8), SHAPES[0]).train()
        model.loss(*universe(SHAPES[0])).backward()
        missing = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
        assert not missing, (name, missing)


def test_mixtures_of_different_items_integrate_to_one():
    """In one dimension, over a grid of pairs of points."""
    torch.manual_seed(0)
    base = ItemMixture(KindsOfSets(4, 3, 2, 0.0), most=2, dim=1).double()
    with torch.no_grad():
        base.centre.mul_(2)
        base.log_scale.fill_(-0.5)
    line = torch.linspace(-9, 9, 400, dtype=torch.float64)
    points = torch.cartesian_prod(line, line)[..., None]
    mass = base.log_prob(points).detach().exp().sum() * (line[1] - line[0]) ** 2
    assert float(mass) == pytest.approx(1, abs=1e-4)
    draws = base.sample((4000,)).detach()
    p = base.log_prob(points).detach().exp()
    for f in (lambda x: x[:, 0, 0] * x[:, 1, 0], lambda x: (x[:, 0, 0] - x[:, 1, 0]).abs()):
        expected = (p * f(points)).sum() * (line[1] - line[0]) ** 2
        assert float(f(draws).mean()) == pytest.approx(float(expected), abs=5 * float(f(draws).std()) / 4000**0.5)


def field(dim: int = 2, attention: str = "l2", size: float = 0.1) -> ItemNetwork:
    torch.manual_seed(0)
    net = Transformer(dim, dim, 8, 1, positions=None, context=1, attention=attention, activation="gelu")
    torch.nn.init.normal_(net.head.weight, 0, size)
    return ItemNetwork(net).double()


@pytest.mark.parametrize("attention", ["dot", "l2"])
def test_the_exact_divergence_is_the_trace_of_the_jacobian(attention):
    net, x = field(attention=attention), torch.randn(5, 3, 2, dtype=torch.float64)
    context = torch.cat([torch.ones(5, 3, 1), torch.full((5, 3, 1), 0.4)], -1).double()
    with torch.no_grad():
        v, divergence = exact_divergence(net, x, context)
    torch.testing.assert_close(v, net(x, context))
    for i in range(5):
        jacobian = torch.autograd.functional.jacobian(lambda z, i=i: net(z[None], context[i : i + 1])[0], x[i])
        torch.testing.assert_close(divergence[i], jacobian.reshape(6, 6).trace())
    many = x[:1].repeat(20_000, 1, 1)
    estimate = hutchinson_divergence(net, many, context[:1].repeat(20_000, 1, 1), torch.randn_like(many))[1].detach()
    assert float(estimate.mean()) == pytest.approx(float(divergence[0]), abs=5 * float(estimate.std()) / 20_000**0.5)


def test_continuous_flows_are_bijections_with_their_determinant():
    flow, x = ContinuousFlow(field(), tolerance=1e-6).eval(), torch.randn(4, 3, 2, dtype=torch.float64)
    with torch.no_grad():
        y, ladj = flow.forward_and_ladj(x)
        back, undone = flow.inverse_and_ladj(y)
    assert flow.evaluations > 6
    torch.testing.assert_close(back, x, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(undone, -ladj, rtol=1e-4, atol=1e-4)
    jacobian = torch.autograd.functional.jacobian(lambda z: flow.forward_and_ladj(z[None])[0][0], x[0])
    torch.testing.assert_close(torch.linalg.slogdet(jacobian.reshape(6, 6)).logabsdet, ladj[0], rtol=1e-4, atol=1e-4)


def test_the_adjoint_has_the_gradients_of_the_value():
    """Both those of the solver's steps and a finite difference; torch's own layer norm fails this."""
    gradients, x = [], torch.linspace(-1, 1, 6, dtype=torch.float64).view(1, 3, 2)

    def value(points, flow):
        y, ladj = flow.forward_and_ladj(points)
        return y.square().sum() + ladj.sum()

    for way in ("steps", "adjoint"):
        flow, here = ContinuousFlow(field(), tolerance=1e-5, gradients=way), x.clone().requires_grad_()
        value(here, flow).backward()
        gradients.append([here.grad, flow.field.net.head.weight.grad])
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-3)
    step = torch.zeros_like(x)
    step[0, 1, 0] = 1e-3
    with torch.no_grad():
        slope = (value(x + step, flow) - value(x - step, flow)) / 2e-3
    torch.testing.assert_close(gradients[0][0][0, 1, 0], slope, rtol=5e-3, atol=5e-3)


def test_a_field_too_steep_is_an_error_with_advice():
    class Explodes(torch.nn.Module):
        def forward(self, x, context):
            return x**3

    with pytest.raises(SolverError, match="smaller learning rate"), torch.no_grad():
        ContinuousFlow(Explodes()).forward_and_ladj(torch.full((1, 1, 2), 3.0))


def test_an_estimated_divergence_makes_a_bound_that_is_none():
    """On average its logarithm is right, but the mean of many weights grows with their noise."""
    shape = SHAPES[0]
    items, mask = universe(shape)
    config = SetFlowConfig(CELLS, ContinuousSetConfig(GaussianBaseConfig(), 1, 8, 1, tolerance=1e-3), noise_width=8)
    model = made(config, shape, change=0.0)
    torch.nn.init.normal_(model.density.bijection.parts[0].field.net.head.weight, 0, 0.35)
    items, mask = items[:4], mask[:4]
    found = compare_traces(model, (items, mask), samples=100)
    _, exact, noisy = found["curve"][-1]
    assert found["deviation"]["estimated"] > found["deviation"]["exact"] + 0.1
    assert noisy < exact - 0.05
    grid = Grid((items, mask), torch.ones(len(items), dtype=torch.float64))
    with estimated_traces(model):
        apparent, _ = total_mass(model, grid, samples=100)
    assert apparent > 1.05 * total_mass(model, grid, samples=100)[0]
