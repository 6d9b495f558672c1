"""Laws of rows of categories and numbers as points."""

from copy import deepcopy

import pytest
import torch

from tessella.data.tables.columns import Column
from tessella.data.tables.encoding import Encoding
from tessella.dequantizers.components import components_in_cells
from tessella.dequantizers.mixed import KNOTS, MonotoneMap, quantile_knots
from tessella.estimators.network import Size, build

COLUMNS = (
    Column("a", "categorical", ("x", "y", "z"), (5, 3, 2)),
    Column("n", "count", frequencies=(0, 10), low=0, high=400, whole=True),
    Column("v", "continuous", frequencies=(3, 7, 4), low=-2, high=2, atoms=(1.5,)),
)


def rows(count: int = 200) -> torch.Tensor:
    """Codes of a, what v is (0 missing, 1 a number, 2 its atom), counts n, numbers v (0 where there is none)."""
    state = torch.multinomial(torch.tensor([0.3, 0.6, 0.1]), count, replacement=True).double()
    a = torch.randint(0, 3, (count,)).double()
    v = torch.randn(count) * (state == 1)
    return torch.stack([a, state, torch.poisson(torch.full((count,), 100.0)), v], 1)


@pytest.fixture
def model():
    torch.manual_seed(1)
    built = build(Encoding(COLUMNS), Size(dim=2, blocks=2, width=8, classes=3), "coupling")
    built.dequantizer.arrange(rows(), [False, False])
    modes, base = components_in_cells(built.dequantizer.cells, rows()[:, :2].long(), numbers=2), built.density.base
    base.start(base.log_weight.clone(), base.logit.clone(), modes.centre, modes.scale)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
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
    given = rows()
    x, log_q = model.dequantizer.dequantize(given)
    back = model.dequantizer.quantize(x)
    assert torch.equal(back[:, :3], given[:, :3])
    torch.testing.assert_close(back[:, 3], given[:, 3], rtol=1e-5, atol=1e-5)
    assert bool(log_q.isfinite().all())


def test_gradients_reach_every_parameter(model):
    model.loss(rows()).backward()
    unreached = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
    assert unreached == []


def test_a_missing_number_or_an_atom_does_not_depend_on_what_stands_in_its_place(model):
    given = rows()
    other = given.clone()
    other[:, 3] = torch.where(given[:, 1] == 1, given[:, 3], 99.0)
    torch.manual_seed(0)
    first = model.elbo(given)
    torch.manual_seed(0)
    assert torch.equal(first, model.elbo(other))


def test_no_mass_is_lost_or_made(model):
    """E_f[ p(x) / (q(x | row) f(row)) ] = P(count in range), for rows from any f."""
    model.initialize(rows())
    count, low, high = 60_000, 60, 150
    a, state, n = (torch.randint(0, k, (count,)).double() for k in (3, 3, high - low))
    present = state == 1
    u = 1.5 * torch.randn(count)
    v = model.dequantizer.scale.inverse(torch.stack([torch.zeros(count), u], 1))[:, 1]
    drawn = torch.stack([a, state, low + n, v * present], 1)
    slope = model.dequantizer.scale.forward_and_ladj(drawn[:, 2:])[1][:, 1]
    log_u = torch.distributions.Normal(0, 1.5).log_prob(u)
    log_f = -torch.tensor(3.0 * 3 * (high - low)).log() + present * (log_u + slope)
    with torch.no_grad():
        weights = (model.elbo(drawn).double() - log_f).exp()
        x = model.density.sample((count,))
    counts = model.dequantizer.quantize(x)[:, 2]
    inside = (counts >= low) & (counts < high)
    error = float(weights.std()) / count**0.5
    assert error < 0.05
    assert abs(float(weights.mean() - inside.double().mean())) < 4 * error


def test_log_q_of_given_points_is_the_one_returned(model):
    """Where nothing is drawn anew: codes, counts, and v missing."""
    given = rows()
    given[:, [1, 3]] = 0
    x, log_q = model.dequantizer.dequantize(given)
    torch.testing.assert_close(model.dequantizer.log_prob(x, given), log_q, rtol=1e-3, atol=1e-3)


@torch.no_grad()
def test_log_q_of_given_points_averages_to_a_density():
    """E_f [ q(x | row) / f(x) ] = 1 with a real number present; f the untouched noise, whose u_0 is normal."""
    plain = build(Encoding(COLUMNS), Size(dim=2, blocks=2, width=8, classes=3), "coupling").dequantizer
    plain.arrange(rows(), [False, False])
    learned = deepcopy(plain)
    for parameter in learned.noise.parameters():
        parameter.add_(0.03 * torch.randn_like(parameter))
    row = torch.tensor([[1.0, 1.0, 100.0, 0.3]]).expand(40_000, -1)
    x, log_f = plain.dequantize(row)
    weight = (learned.log_prob(x, row) - log_f).double().exp()
    assert float(weight.std()) > 0.1
    assert abs(float(weight.mean()) - 1) < 4 * float(weight.std()) / len(row) ** 0.5 < 0.05


def test_points_outside_the_region_of_their_row_have_no_density(model):
    x, _ = model.dequantizer.dequantize(rows(5))
    other = rows(5)
    other[:, 2] += 500
    assert bool((model.dequantizer.log_prob(x, other) == -torch.inf).all())
