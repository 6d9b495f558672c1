"""The cell bijection: against the paper's own form, inside its cell, at the extremes of the number line."""

import pytest
import torch
import zuko
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import Independent, Normal, StudentT, TransformedDistribution

from benchmarks.paper_form import paper_form
from tessella import Box, CellBijection, Laguerre, Voronoi
from tessella.bijections import SQUASHINGS, ActNorm, power

PROFILES = [*SQUASHINGS, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0]


def random_laguerre(*args, **kwargs) -> Laguerre:
    tessellation = Laguerre.create(*args, **kwargs)
    torch.nn.init.normal_(tessellation.rho, std=2.0)
    return tessellation


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 63])
def test_equals_the_paper_form(dim):
    """Ray, lambda* and rank-2 determinant give the same map, log-determinant and gradients."""
    variables, cells = 3, 6
    box = Box.cube(4.0, dim)
    tessellation = Voronoi.create([cells] * variables, dim, box=box)
    bijection = CellBijection(tessellation)
    torch.nn.init.normal_(bijection.log_scale, std=0.5)
    cell = torch.randint(cells, (50, variables))
    y = torch.randn(50, variables, dim, requires_grad=True)
    ours = bijection.forward_and_ladj(y, cell)
    points = y + tessellation.anchor_of(cell)
    theirs = paper_form(points, cell, tessellation.anchors, bijection.log_scale, *box.bounds())
    torch.testing.assert_close(ours, theirs)
    wanted = [y, *bijection.parameters()]
    for a, b in zip(
        torch.autograd.grad(ours[0].sin().sum() + ours[1].sum(), wanted),
        torch.autograd.grad(theirs[0].sin().sum() + theirs[1].sum(), wanted),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


TESSELLATIONS = {
    "voronoi": lambda: Voronoi.create(50, 2),
    "voronoi-boxed": lambda: Voronoi.create(50, 3, box=Box.cube(3.0, 3)),
    "laguerre": lambda: random_laguerre(50, 2),
    "laguerre-boxed": lambda: random_laguerre(20, 4, box=Box.cube(2.0, 4)),
}


def misses(tessellation, draws: int) -> float:
    """Share of images of a heavy-tailed base (Student-t with 2 degrees of freedom) that miss their own cell."""
    bijection = CellBijection(tessellation)
    dtype = tessellation.free.dtype
    missed = 0
    for _ in range(4):
        cell = torch.randint(tessellation.counts[0], (draws // 4,))
        y = StudentT(2.0).sample((draws // 4, tessellation.dim)).to(dtype) * 3
        with torch.no_grad():
            z, _ = bijection.forward_and_ladj(y, cell)
            wrong = tessellation.nearest(z) != cell
            if tessellation.box is not None:
                lo, hi = tessellation.box.bounds()
                wrong |= ((z <= lo) | (z >= hi)).any(-1)
        missed += int(wrong.sum())
    return missed / draws


@pytest.mark.parametrize("name", TESSELLATIONS)
def test_a_million_images_lie_in_their_own_cell(name):
    assert misses(TESSELLATIONS[name](), 1_000_000) == 0


@pytest.mark.parametrize("name", TESSELLATIONS)
def test_single_precision_misses_are_rare(name):
    """Rounding alone carries a point over a wall: fewer than 2 in 100,000 of a base with very heavy tails."""
    assert misses(TESSELLATIONS[name]().float(), 400_000) < 2e-5


def test_continuous_across_the_edges_where_walls_meet():
    """Walk a circle around each anchor: a step eight times as fine makes the largest move far smaller, so no jumps."""
    bijection = CellBijection(Voronoi.create(30, 2))

    def largest_move(steps: int) -> torch.Tensor:
        angle = torch.linspace(0, 2 * torch.pi, steps + 1)
        circle = 2.0 * torch.stack([angle.cos(), angle.sin()], -1).expand(30, -1, -1)
        z, ladj = bijection.forward_and_ladj(circle, torch.arange(30)[:, None].expand(30, steps + 1))
        return torch.stack([z.diff(dim=1).norm(dim=-1).amax(1), ladj.diff(dim=1).abs().amax(1)])

    assert (largest_move(80_000) < 0.2 * largest_move(10_000)).all()


@pytest.mark.parametrize("squashing", PROFILES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_at_the_anchor_exactly(squashing, dtype):
    """f(0) = x_k and the log-determinant there is D log g, both ways."""
    tessellation = Voronoi.create(5, 3)
    bijection = CellBijection(tessellation, squashing)
    torch.nn.init.normal_(bijection.log_scale)
    bijection = bijection.to(dtype)
    cell, y = torch.arange(5), torch.zeros(5, 3, dtype=dtype, requires_grad=True)
    z, ladj = bijection.forward_and_ladj(y, cell)
    assert torch.equal(z, tessellation.anchors)
    torch.testing.assert_close(ladj, 3 * bijection.log_scale)
    back, back_ladj = bijection.inverse_and_ladj(z, cell)
    assert torch.equal(back, torch.zeros_like(back))
    torch.testing.assert_close(back_ladj, -3 * bijection.log_scale)
    (z.sum() + ladj.sum() + back.sum() + back_ladj.sum()).backward()
    assert y.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in bijection.parameters())


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("squashing", PROFILES)
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_finite_from_1e_minus_30_to_1e30(squashing, boxed, dtype, learned):
    if learned and squashing in ("exponential", "arctan"):
        pytest.skip("no power to learn")
    tessellation = Voronoi.create(8, 3, box=Box.cube(3.0, 3) if boxed else None)
    bijection = CellBijection(tessellation, squashing, learn_power=learned).to(dtype)
    size = 10.0 ** torch.arange(-30, 31, dtype=dtype)
    y = (torch.randn(40, 1, 3, dtype=dtype) * size[:, None]).requires_grad_()
    cell = torch.randint(8, y.shape[:-1])
    z, ladj = bijection.forward_and_ladj(y, cell)
    assert z.isfinite().all()
    assert ladj.isfinite().all()
    back, back_ladj = bijection.inverse_and_ladj(z.detach(), cell)
    assert back.isfinite().all()
    assert back_ladj.isfinite().all()
    (z.sum() + ladj.clamp_min(-1e6).sum()).backward()
    assert y.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in bijection.parameters())


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_softsign_and_the_root_are_powers(p):
    """Also where p is a tensor, for which nothing is a special case."""
    s = 10.0 ** torch.linspace(-6, 6, 200)
    named, general = power(p), power(torch.tensor(p))
    torch.testing.assert_close(general.shrink(s), named.shrink(s))
    torch.testing.assert_close(general.log_volume(s, 5), named.log_volume(s, 5), rtol=1e-7, atol=1e-12)
    t = torch.linspace(0.0, 0.999, 200)
    torch.testing.assert_close(general.undo(t, 1 - t), named.undo(t, 1 - t))


@pytest.mark.parametrize("p", [1.0, 3.0, 8.0, 32.0])
def test_a_power_is_a_profile(p):
    """a(0) = 0, a'(0) = 1, a' > 0, a -> 1, and the three closed forms belong together."""
    profile, s = power(p), (10.0 ** torch.linspace(-4, 0.2, 300)).requires_grad_()  # further out autograd cancels
    a = s * profile.shrink(s)
    (slope,) = torch.autograd.grad(a.sum(), s)
    torch.testing.assert_close(profile.log_volume(s, 1), slope.log(), rtol=1e-6, atol=1e-6)
    assert (slope > 0).all()
    assert float(1e9 * profile.shrink(torch.tensor(1e9))) == pytest.approx(1.0, abs=1e-8)
    assert float(profile.shrink(torch.zeros(()))) == 1.0
    middle = s.detach()[a < 1 - 1e-7]  # closer to the wall 1 - t has lost its digits
    t = middle * profile.shrink(middle)
    torch.testing.assert_close(profile.undo(t, 1 - t), middle, rtol=1e-7, atol=1e-12)


def test_a_learned_power_learns():
    bijection = CellBijection(Voronoi.create(5, 3), 8.0, learn_power=True)
    torch.testing.assert_close(bijection.profile().shrink(torch.ones(4)), power(8.0).shrink(torch.ones(4)))
    z, ladj = bijection.forward_and_ladj(torch.randn(50, 3), torch.randint(5, (50,)))
    (z.square().sum() + ladj.sum()).backward()
    assert float(bijection.raw_power.grad.abs()) > 0
    with pytest.raises(ValueError, match="learn_power: got a profile that is no power"):
        CellBijection(Voronoi.create(5, 3), "exponential", learn_power=True)
    with pytest.raises(ValueError, match=r"squashing: got the power 0\.5; expected at least 1"):
        CellBijection(Voronoi.create(5, 3), 0.5)


def test_steady_maps_have_the_same_values_and_calm_gradients():
    """Close to a wall the slope of a log-density grows like 1 / (1 - t); steady, it stays as at 1 - t = steady."""
    slopes = []
    for steady in (0.0, 0.5):
        f = CellBijection(Voronoi(torch.tensor([[-1.0], [1.0]], dtype=torch.float64)), 8.0, steady=steady)
        x = torch.tensor([[-0.9], [-1e-2], [-1e-4]], dtype=torch.float64, requires_grad=True)
        y, ladj = f.inverse_and_ladj(x, torch.zeros(3, dtype=torch.long))
        slopes.append((torch.autograd.grad(ladj.sum(), x)[0][:, 0], y.detach(), ladj.detach()))
    (free, *values), (calm, *same) = slopes
    assert all(torch.equal(a, b) for a, b in zip(values, same, strict=True))
    assert calm[0] == free[0]
    assert free[2] > 1e3
    assert calm[2] < 3


@pytest.mark.parametrize("squashing", PROFILES)
@pytest.mark.parametrize("steady", [0.0, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_almost_along_a_wall(squashing, steady, dtype):
    """A gauge of 1e-9 is lost in 1 - t: one such point in a million must not end a training."""
    bijection = CellBijection(Voronoi(torch.tensor([[0.0, 0.0], [1.0, 0.0]])), squashing, steady=steady).to(dtype)
    gauge = torch.cat([torch.zeros(1), 10.0 ** -torch.arange(0.1, 37.0)]).to(dtype)
    z = torch.stack([gauge / 2, torch.ones_like(gauge)], -1).requires_grad_()
    y, ladj = bijection.inverse_and_ladj(z, torch.zeros(len(z), dtype=torch.long))
    (y.sum() + ladj.sum()).backward()
    assert z.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in bijection.parameters())


def test_unbounded_directions_are_only_scaled():
    """Away from every wall the gauge is 0 and f is y -> x_k + g y, onto the whole unbounded cell."""
    bijection = CellBijection(Voronoi(torch.tensor([[0.0, 0.0], [1.0, 0.0]])))
    torch.nn.init.constant_(bijection.log_scale, 0.7)
    y = torch.tensor([[-3.0, 2.0], [-1e8, 1e9]])
    z, ladj = bijection.forward_and_ladj(y, torch.tensor([0, 0]))
    torch.testing.assert_close(z, y * torch.tensor(0.7).exp())
    torch.testing.assert_close(ladj, torch.tensor([1.4, 1.4]))


@given(
    cells=st.integers(1, 6), dim=st.integers(1, 5), boxed=st.booleans(), squashing=st.sampled_from(PROFILES),
    scale=st.floats(-3, 3), spread=st.floats(1e-3, 10), seed=st.integers(0, 2**16),
)  # fmt: skip
def test_round_trip_for_any_shape_and_scale(cells, dim, boxed, squashing, scale, spread, seed):
    torch.manual_seed(seed)
    bijection = CellBijection(Voronoi.create(cells, dim, box=Box.cube(2.0, dim) if boxed else None), squashing)
    torch.nn.init.constant_(bijection.log_scale, scale)
    y, cell = torch.randn(20, dim) * spread, torch.randint(cells, (20,))
    z, ladj = bijection.forward_and_ladj(y, cell)
    inside = ~bijection.outside(z, cell)
    back, back_ladj = bijection.inverse_and_ladj(z, cell)
    # Near a wall 1 - t keeps only the digits that rounding left it.
    t = bijection.tessellation.gauge(z - bijection.tessellation.anchor_of(cell), cell)
    clear = inside & (1 - t > 1e-9)
    torch.testing.assert_close(back[clear], y[clear], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(back_ladj[clear], -ladj[clear], rtol=1e-4, atol=1e-3)


def test_points_beyond_the_wall_are_counted_and_stay_finite():
    bijection = CellBijection(Voronoi(torch.tensor([[-1.0], [1.0]])))
    z, cell = torch.tensor([[-0.5], [0.0], [0.5]]), torch.tensor([0, 0, 0])
    assert bijection.outside(z, cell).tolist() == [False, True, True]
    y, ladj = bijection.inverse_and_ladj(z, cell)
    assert y.isfinite().all()
    assert ladj.isfinite().all()


def test_a_base_with_cauchy_tails_gives_positive_density_at_the_wall():
    """|det Df|^-1 grows like h^(D+1): a base with tail |y|^-(D+1) leaves a finite, positive density on the wall."""
    into = CellBijection(Voronoi(torch.tensor([[0.0], [2.0]]))).as_transform(torch.tensor(0))
    near = torch.tensor([[1 - 1e-6], [1 - 1e-5]])

    def density(base: torch.distributions.Distribution) -> torch.Tensor:
        return TransformedDistribution(Independent(base, 1), [into]).log_prob(near).exp()

    heavy = density(StudentT(torch.ones(1)))
    torch.testing.assert_close(heavy[0], heavy[1], rtol=1e-3, atol=0.0)
    assert heavy[0] > 0.1
    assert (density(Normal(torch.zeros(1), 1.0)) == 0).all()


def test_integrates_to_one_over_the_cell():
    """Quadrature of the pushed-forward density over a 2-D cell."""
    tessellation = Voronoi.create(7, 2, box=Box.cube(1.0, 2))
    bijection = CellBijection(tessellation)
    grid = (torch.arange(1000) + 0.5) / 500 - 1
    x = torch.cartesian_prod(grid, grid)
    nearest = tessellation.nearest(x)
    for k in range(7):
        inside = x[nearest == k]
        into = bijection.as_transform(torch.full((len(inside),), k))
        base = Independent(Normal(torch.zeros(2), 1.0), 1)
        mass = TransformedDistribution(base, [into]).log_prob(inside).exp().sum() / 500**2
        assert mass.item() == pytest.approx(1.0, abs=5e-3)


def test_inside_a_zuko_flow():
    """A cell bijection as the last transform of a zuko flow: samples stay in the cell, log_prob is right."""
    tessellation = Voronoi.create(5, 2, box=Box.cube(2.0, 2))
    cell = torch.tensor(3)
    into = CellBijection(tessellation).as_transform(cell)
    flow = zuko.flows.Flow(
        zuko.lazy.UnconditionalTransform(lambda: into.inv),
        zuko.lazy.UnconditionalDistribution(zuko.distributions.DiagNormal, torch.zeros(2), torch.ones(2), buffer=True),
    )
    x = flow().sample((200,))
    assert (tessellation.nearest(x) == cell).all()
    expected = TransformedDistribution(Independent(Normal(torch.zeros(2), 1.0), 1), [into]).log_prob(x)
    torch.testing.assert_close(flow().log_prob(x), expected)


def test_bad_input_is_named():
    bijection = CellBijection(Voronoi.create([3, 2], 2))
    good, cell = torch.zeros(4, 2, 2), torch.zeros(4, 2, dtype=torch.int64)
    with pytest.raises(TypeError, match="context: got None; expected the cell index"):
        bijection.forward_and_ladj(good)
    with pytest.raises(ValueError, match=r"x: got shape \(4, 2\)"):
        bijection.forward_and_ladj(good[..., 0], cell)
    with pytest.raises(ValueError, match="y: 16 of 16 values are NaN"):
        bijection.inverse_and_ladj(good + torch.nan, cell)
    with pytest.raises(ValueError, match=r"context \(cell\): value 2 at \[0, 1\]"):
        bijection.forward_and_ladj(good, cell + torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="squashing: got 'tanh'; expected one of softsign"):
        CellBijection(Voronoi.create(3, 2), "tanh")


def test_actnorm_whitens_its_first_batch():
    norm, x = ActNorm((3, 2)), torch.randn(500, 3, 2) * 4 + 7
    norm.initialize(x)
    y, _ = norm.forward_and_ladj(x)
    torch.testing.assert_close(y.mean(0), torch.zeros(3, 2))
    torch.testing.assert_close(y.std(0, correction=0), torch.ones(3, 2))
    with pytest.raises(ValueError, match="x: got 1 points; expected at least 2"):
        norm.initialize(x[:1])
