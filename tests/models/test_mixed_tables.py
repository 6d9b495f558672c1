"""Laws of rows of categories and numbers as points."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from tessella.contracts import Batch
from tessella.data.tables.shape import TableShape
from tessella.densities import CellCouplingConfig, CouplingConfig
from tessella.dequantizers import CellsConfig, ConditionalNoise
from tessella.dequantizers.numbers import KNOTS, MonotoneMap, quantile_knots
from tessella.models import FlowConfig, MixtureStartConfig, SemiDiscrete

# A category a, what v is (0 missing, 1 a number, 2 an atom), a count n and a number v.
SHAPE = TableShape(counts=(3, 3), whole=(True, False), indicators=(-1, 1), ordered=(False, False))
CONFIG = MixtureStartConfig(components=3, blocks=2, width=8, noise=ConditionalNoise(width=8, layers=1))


def rows(count: int = 200) -> Batch:
    """Codes of a and of what v is; counts n, numbers v (0 where there is none)."""
    state = torch.multinomial(torch.tensor([0.3, 0.6, 0.1]), count, replacement=True)
    a = torch.randint(0, 3, (count,))
    v = torch.randn(count) * (state == 1)
    return torch.stack([a, state], 1), torch.stack([torch.poisson(torch.full((count,), 100.0)), v], 1)


@pytest.fixture
def model() -> SemiDiscrete:
    torch.manual_seed(1)
    built = CONFIG.start(SHAPE, rows(), rows()).model
    assert isinstance(built, SemiDiscrete)
    with torch.no_grad():
        for table in (built.density.base.logit, built.density.base.log_weight):
            table.zero_()  # every component everywhere: weights of rows from anywhere stay moderate
        for parameter in built.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    return built


@pytest.mark.parametrize(
    "values",
    [torch.randn(500), torch.randn(500).exp() * 1e6, torch.tensor([0.0] * 90 + [1.0] * 10), torch.tensor([1.0, 2.0])],
    ids=["normal", "wide", "repeated", "two"],
)
def test_the_map_is_monotone_and_exact_in_both_directions(values):
    scale = MonotoneMap(1)
    scale.t[0], scale.z[0] = quantile_knots(values)
    assert scale.t.shape == (1, KNOTS)
    spread = values.max() - values.min()
    t = torch.linspace(values.min() - 2 * spread, values.max() + 2 * spread, 301)[:, None].requires_grad_()
    z, ladj = scale.forward_and_ladj(t)
    assert bool((z.diff(dim=0) > 0).all())
    torch.testing.assert_close(scale.inverse(z), t, rtol=1e-9, atol=1e-9 * float(spread))
    (slope,) = torch.autograd.grad(z.sum(), t)
    torch.testing.assert_close(slope.log(), ladj, rtol=1e-9, atol=1e-9)


def test_knots_make_values_look_normal():
    values = torch.randn(4000).exp()
    scale = MonotoneMap(1)
    scale.t[0], scale.z[0] = quantile_knots(values)
    z = scale.forward_and_ladj(values[:, None])[0]
    assert abs(float(z.mean())) < 0.05
    assert abs(float(z.std()) - 1) < 0.1


def test_an_outlier_has_a_finite_image():
    z, ladj = MonotoneMap(1).forward_and_ladj(torch.tensor([[1e300], [-1e300]]))
    assert bool(z.isfinite().all())
    assert bool(ladj.isfinite().all())


def test_quantize_undoes_dequantize(model):
    codes, values = rows()
    x, log_q = model.dequantizer.dequantize(codes, values)
    back, numbers = model.dequantizer.quantize(x)
    assert torch.equal(back, codes)
    assert torch.equal(numbers[:, 0], values[:, 0])
    torch.testing.assert_close(numbers[:, 1], values[:, 1], rtol=1e-5, atol=1e-5)
    assert bool(log_q.isfinite().all())


def test_gradients_reach_every_parameter(model):
    model.loss(*rows()).backward()
    unreached = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
    assert unreached == []


def test_a_missing_number_or_an_atom_does_not_depend_on_what_stands_in_its_place(model):
    codes, values = rows()
    other = values.clone()
    other[:, 1] = torch.where(codes[:, 1] == 1, values[:, 1], 99.0)
    torch.manual_seed(0)
    first = model.elbo(codes, values)
    torch.manual_seed(0)
    assert torch.equal(first, model.elbo(codes, other))


def test_no_mass_is_lost_or_made(model):
    """E_f[ p(x) / (q(x | row) f(row)) ] = P(count in range), for rows from any f."""
    model.initialize(*rows())
    count, low, high = 60_000, 60, 150
    a, state, n = (torch.randint(0, k, (count,)) for k in (3, 3, high - low))
    scale = model.dequantizer.numbers.scale
    present = state == 1
    u = 1.5 * torch.randn(count)
    v = scale.inverse(torch.stack([torch.zeros(count), u], 1))[:, 1]
    codes, values = torch.stack([a, state], 1), torch.stack([low + n, v * present], 1)
    slope = scale.forward_and_ladj(values)[1][:, 1]
    log_u = torch.distributions.Normal(0, 1.5).log_prob(u)
    log_f = -torch.tensor(3.0 * 3 * (high - low)).log() + present * (log_u + slope)
    with torch.no_grad():
        weights = (model.elbo(codes, values).double() - log_f).exp()
        x = model.density.sample((count,))
    counts = model.dequantizer.quantize(x)[1][:, 0]
    inside = (counts >= low) & (counts < high)
    error = float(weights.std()) / count**0.5
    assert error < 0.05
    assert abs(float(weights.mean() - inside.double().mean())) < 4 * error


def test_log_q_of_given_points_is_the_one_returned(model):
    """Where nothing is drawn anew: codes, counts, and v missing."""
    codes, values = rows()
    codes[:, 1], values[:, 1] = 0, 0
    x, log_q = model.dequantizer.dequantize(codes, values)
    torch.testing.assert_close(model.dequantizer.log_prob(x, codes, values), log_q, rtol=1e-3, atol=1e-3)


@torch.no_grad()
def test_log_q_of_given_points_averages_to_a_density():
    """E_f [ q(x | row) / f(x) ] = 1 with a real number present; f the untouched noise, whose u_0 is normal."""
    plain = CONFIG.build(SHAPE).dequantizer
    plain.arrange_apart(*rows())
    learned = deepcopy(plain)
    for parameter in learned.noise.parameters():
        parameter.add_(0.03 * torch.randn_like(parameter))
    row = torch.tensor([[1, 1]]).expand(40_000, -1), torch.tensor([[100.0, 0.3]]).expand(40_000, -1)
    x, log_f = plain.dequantize(*row)
    weight = (learned.log_prob(x, *row) - log_f).double().exp()
    assert float(weight.std()) > 0.1
    assert abs(float(weight.mean()) - 1) < 4 * float(weight.std()) / len(x) ** 0.5 < 0.05


def test_points_outside_the_region_of_their_row_have_no_density(model):
    x, _ = model.dequantizer.dequantize(*rows(5))
    codes, values = rows(5)
    values[:, 0] += 500
    assert bool((model.dequantizer.log_prob(x, codes, values) == -torch.inf).all())


HALVES = CouplingConfig(blocks=1, width=8, layers=1)
KNOWING = CellCouplingConfig(groups=2, components=2, width=8, layers=1)


@pytest.mark.parametrize(
    ("cells", "density"),
    [*((cells, HALVES) for cells in ("voronoi", "simplex", "ordinal")), ("voronoi", KNOWING), ("simplex", KNOWING)],
)
def test_any_geometry_takes_numbers_beside_it(cells, density):
    config = FlowConfig(CellsConfig.named(cells), CONFIG.noise, density)
    model = config.start(SHAPE, rows(), rows()).model
    model.initialize(*rows())
    assert bool(model.log_prob(*rows(20), samples=3).isfinite().all())
    codes, values = model.sample(7)
    assert codes.shape == values.shape == (7, 2)


def test_a_started_model_is_built_again_by_the_config_that_came_with_it():
    started = replace(CONFIG, components=0).start(SHAPE, rows(), rows())
    assert started.config.components == started.mixture.components - 1
    again = started.config.build(SHAPE)
    again.load_state_dict(started.model.state_dict())
    with pytest.raises(ValueError, match="components: got 0, which leaves them to the rows"):
        replace(CONFIG, components=0).build(SHAPE)
