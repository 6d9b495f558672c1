"""Laws of disjoint mixtures: mass one, draws that follow the density, gradients to every part, nesting, both doors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tessella.bijections import ActNorm, Chain, ContextAffine, Coupling
from tessella.bijections.squashing import profile_of
from tessella.densities import DimensionwiseMixture, DisjointMixture, Flow, FlowMixture, Gaussian, StudentT
from tessella.densities.disjoint import moments, spread
from tessella.geometry import Box, Laguerre, Voronoi
from tessella.nets import MLP
from tessella.nets.mlp import zero


def perturbed(density, size=0.15):
    """Away from its symmetric start; anchors stay apart, since they begin further apart than that."""
    with torch.no_grad():
        for parameter in density.parameters():
            parameter.add_(size * torch.randn_like(parameter))
    return density


def anchors(dim: int) -> torch.Tensor:
    return torch.tensor([[-2.0, 0.5], [0.0, 1.5], [0.5, -1.0], [2.0, 0.0], [-1.0, -1.5]])[:, :dim]


def voronoi(dim):
    return Voronoi(anchors(dim))


def laguerre(dim):
    return Laguerre(anchors(dim))


def boxed(dim):
    return Voronoi(anchors(dim), Box.cube(4.0, dim, learnable=True))


def boxed_laguerre(dim):
    return Laguerre(anchors(dim), Box.cube(4.0, dim, learnable=True))


def flow(dim, context, base=Gaussian):
    """A conditional coupling flow, close enough to the identity for quadrature."""
    first = ContextAffine(zero(nn.Linear(context, 2 * dim)))
    couplings = [Coupling(2, keep, MLP(1, 2, 8, 1, context)) for keep in ([0], [1])] if dim == 2 else []
    return Flow(base((dim,)), Chain(first, *couplings))


def plain(tessellation, base, dim):
    return DisjointMixture(tessellation(dim), base((dim,)), embedding=0, scale=0.7)


def nested(tessellation, dim):
    inner = DisjointMixture(tessellation(dim), flow(dim, 5 + 3), embedding=5, context=3, scale=0.7)
    return DisjointMixture(voronoi(dim), inner, embedding=3, scale=0.5)


def dimensionwise(dim, base):
    """The line cut at four places in each dimension; the gate is bounded, as displacements are not."""
    gate = nn.Sequential(nn.Softsign(), MLP(dim, 5 * dim, 8, 1))
    cuts = Voronoi(torch.stack([anchors(2)[:, :1], 0.8 * anchors(2)[:, :1]])[:dim])
    return DimensionwiseMixture(cuts, base((dim,)), gate)


# name: density over R^dim
MIXTURES = {
    "voronoi-gaussian": lambda dim: plain(voronoi, Gaussian, dim),
    "voronoi-student": lambda dim: plain(voronoi, lambda shape: StudentT(shape, 7), dim),
    "laguerre-gaussian": lambda dim: plain(laguerre, Gaussian, dim),
    "laguerre-student": lambda dim: plain(laguerre, lambda shape: StudentT(shape, 7), dim),
    "boxed-gaussian": lambda dim: plain(boxed, Gaussian, dim),
    "boxed-student": lambda dim: plain(boxed, StudentT, dim),
    "boxed-laguerre-student": lambda dim: plain(boxed_laguerre, StudentT, dim),
    "root-gaussian": lambda dim: DisjointMixture(voronoi(dim), Gaussian((dim,)), 0, squashing="root"),
    "voronoi-flow": lambda dim: DisjointMixture(voronoi(dim), flow(dim, 4), embedding=4, scale=0.7),
    "boxed-laguerre-flow": lambda dim: DisjointMixture(boxed_laguerre(dim), flow(dim, 4, StudentT), 4, scale=0.7),
    "affine-gaussian": lambda dim: DisjointMixture(voronoi(dim), Gaussian((dim,)), 0, scale=0.7, affine=True),
    # A component wider than its cell is piled up at the walls by a large power, in layers that no grid resolves.
    "affine-power": lambda dim: DisjointMixture(
        laguerre(dim), StudentT((dim,), 8), 0, squashing=8.0, scale=0.1, affine=True
    ),
    "nested": lambda dim: nested(voronoi, dim),
    "nested-laguerre": lambda dim: nested(laguerre, dim),
    "behind-a-flow": lambda dim: Flow(
        DisjointMixture(laguerre(dim), flow(dim, 4), embedding=4, scale=0.7),
        Chain(ActNorm((dim,)), *([Coupling(2, [0], MLP(1, 2, 8, 1))] if dim == 2 else [])),
    ),
    "ordinary": lambda dim: FlowMixture(flow(dim, 4), 5, embedding=4),
    "dimensionwise": lambda dim: dimensionwise(dim, Gaussian),
    "dimensionwise-student": lambda dim: dimensionwise(dim, lambda shape: StudentT(shape, 7)),
}


@pytest.fixture(params=MIXTURES, ids=str)
def make(request):
    """Constructor by dimension, moved off its start."""
    return lambda dim: perturbed(MIXTURES[request.param](dim))


def midpoints(steps: int, side: float) -> torch.Tensor:
    return ((torch.arange(steps) + 0.5) / steps - 0.5) * side


@torch.no_grad()
def test_mass_is_one_on_the_line(make):
    steps, side = 400_000, 24.0
    x = midpoints(steps, side)[:, None]
    assert make(1).log_prob(x).exp().sum().item() * side / steps == pytest.approx(1, abs=1e-3)


@torch.no_grad()
def test_mass_is_one_in_the_plane_and_draws_follow_it(make):
    """Quadrature over the plane; then shares of draws in half-planes and a disc against the mass there."""
    mixture, steps, side = make(2), 900, 22.0
    axis = midpoints(steps, side)
    x = torch.cartesian_prod(axis, axis)
    mass = mixture.log_prob(x).exp() * (side / steps) ** 2
    assert mass.sum().item() == pytest.approx(1, abs=5e-3)
    draws = mixture.sample((20_000,))
    for region in (lambda p: p[:, 0] > 0.4, lambda p: p[:, 1] > p[:, 0], lambda p: p.square().sum(-1) < 2):
        assert region(draws).double().mean().item() == pytest.approx(mass[region(x)].sum().item(), abs=0.015)


@torch.no_grad()
def test_expected_inverse_density_of_draws_is_a_volume(make):
    """E[1{x in A} / p(x)] = |A|, for the small disc A, among some, on whose rim p is farthest from 0."""
    mixture, radius = make(2), 0.03
    draws = mixture.sample((200_000,))
    angle = torch.linspace(0, 2 * torch.pi, 33)
    rims = draws[:300, None] + radius * torch.stack([angle.cos(), angle.sin()], -1)
    centre = draws[mixture.log_prob(rims).min(-1).values.argmax()]
    inside = (draws - centre).norm(dim=-1) < radius
    value = torch.where(inside, (-mixture.log_prob(draws)).exp(), 0.0)
    assert inside.sum() > 20
    error = value.std() / len(value) ** 0.5
    assert abs(value.mean() - torch.pi * radius**2) < 5 * error


@pytest.mark.parametrize(
    "name", [name for name in MIXTURES if not name.startswith(("ordinary", "behind", "dimensionwise"))]
)
@torch.no_grad()
def test_draws_fall_into_cells_as_the_weights_say(name):
    mixture = perturbed(MIXTURES[name](2))
    mixture.logits.normal_()
    draws = mixture.sample((20_000,))
    shares = torch.bincount(mixture.tessellation.nearest(draws), minlength=5) / len(draws)
    torch.testing.assert_close(shares, mixture.log_weights().exp(), atol=0.015, rtol=0)


def test_a_gradient_reaches_every_parameter(make):
    mixture = make(2)
    mixture.log_prob(mixture.sample((300,)).detach()).sum().backward()
    for name, parameter in mixture.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_draws_carry_gradients_to_the_cells(make):
    mixture = make(2)
    mixture.sample((300,)).sum().backward()
    unreached = {name for name, parameter in mixture.named_parameters() if parameter.grad is None}
    assert all(name.endswith(("logits", "tilt")) or name.startswith("gate.") for name in unreached)


@torch.no_grad()
def test_gradient_is_the_slope(make):
    """Central differences along a random direction of all parameters, on points that no wall passes meanwhile."""
    mixture = make(2)
    x = mixture.sample((50,))
    parameters = list(mixture.parameters())
    with torch.enable_grad():
        value = mixture.log_prob(x).sum()
        grads = torch.autograd.grad(value, parameters)
    directions = [torch.randn_like(parameter) for parameter in parameters]
    expected = sum((g * d).sum() for g, d in zip(grads, directions, strict=True))
    values = []
    for step in (1e-6, -2e-6):
        for parameter, direction in zip(parameters, directions, strict=True):
            parameter.add_(step * direction)
        values.append(mixture.log_prob(x).sum())
    assert (values[0] - values[1]).item() / 2e-6 == pytest.approx(expected.item(), rel=1e-4)


@torch.no_grad()
def test_single_precision_agrees_with_double(make):
    mixture = make(2)
    x = mixture.sample((500,)).float()
    expected = mixture.log_prob(x.double())
    found = mixture.float().log_prob(x)
    assert found.dtype == torch.float32
    usual = expected > expected.quantile(0.05)  # close to a wall a Gaussian component loses digits, as it must
    torch.testing.assert_close(found.double()[usual], expected[usual], atol=2e-3, rtol=1e-3)
    assert found.isfinite().all()


@pytest.mark.parametrize("name", ["boxed-laguerre-flow", "nested"])
@torch.no_grad()
def test_compiles_to_one_graph(name):
    mixture = MIXTURES[name](2)
    x = mixture.sample((20,))
    compiled = torch.compile(mixture.log_prob, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), mixture.log_prob(x))


def test_weights_survive_saving(make):
    mixture = make(2)
    x = mixture.sample((10,)).detach()
    again = make(2)
    again.load_state_dict(mixture.state_dict())
    torch.testing.assert_close(again.log_prob(x), mixture.log_prob(x), rtol=0, atol=0)


@given(
    cells=st.integers(1, 6), dim=st.integers(1, 5), batch=st.lists(st.integers(0, 4), max_size=3), told=st.booleans()
)
def test_shapes(cells, dim, batch, told):
    component = Flow(Gaussian((dim,)), ContextAffine(nn.Linear(3, 2 * dim))) if told else Gaussian((dim,))
    mixture = DisjointMixture(Voronoi.create(cells, dim), component, embedding=3 if told else 0)
    x = mixture.sample(tuple(batch))
    assert x.shape == (*batch, dim)
    assert mixture.log_prob(x).shape == tuple(batch)


@torch.no_grad()
def test_one_component_per_point():
    """The component sees each point once, whatever the number of cells; the ordinary mixture shows it K times."""
    seen = []

    class Watched(Gaussian):
        def log_prob(self, x, context=None):
            seen.append(x.shape[:-1].numel())
            return super().log_prob(x)

    x = torch.randn(7, 2)
    for cells in (1, 50):
        DisjointMixture(Voronoi.create(cells, 2), Watched((2,)), embedding=0).log_prob(x)
    FlowMixture(Watched((2,)), 50, embedding=1).log_prob(x)
    assert seen == [7, 7, 350]


@torch.no_grad()
def test_starts_as_noise_of_a_fifth_around_the_anchors():
    far_apart = DisjointMixture(Voronoi(1000 * anchors(2)), Gaussian((2,)), embedding=0)
    draws = far_apart.sample((40_000,))
    displacement = draws - far_apart.tessellation.anchor_of(far_apart.tessellation.nearest(draws))
    torch.testing.assert_close(displacement.std(0), torch.full((2,), 0.2), atol=0.005, rtol=0)


@torch.no_grad()
def test_walls():
    """From a Gaussian component the density vanishes there; from Student's t it has a positive limit on both sides."""
    at_wall = torch.tensor([[-1e-4], [1e-4]])  # anchors at -1 and 1: the wall is at 0
    two = torch.tensor([[-1.0], [1.0]])
    gaussian = DisjointMixture(Voronoi(two), Gaussian((1,)), embedding=0).log_prob(at_wall).exp()
    student = DisjointMixture(Voronoi(two), StudentT((1,)), embedding=0).log_prob(at_wall).exp()
    assert (gaussian < 1e-300).all()
    # 1/2 of g / (pi (g^2 (1 - t)^2 + t^2)) at t = 1 and g = 0.2, by hand
    torch.testing.assert_close(student, torch.full((2,), 0.1 / torch.pi), atol=1e-4, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("dim", [1, 3, 8])
@pytest.mark.parametrize("p", [1.0, 2.5, 8.0, 16.0])
def test_students_t_with_p_degrees_arrives_at_the_walls_of_a_power(p, dim):
    """log t_p(s) - log_volume(s) has a finite limit: the density neither vanishes nor grows, where s^p rules."""
    s = torch.tensor([1e5, 1e6])
    points = torch.zeros(2, dim)
    points[:, 0] = s
    far, further = StudentT((dim,), p).log_prob(points) - profile_of(p).log_volume(s, dim)
    assert far.isfinite()
    torch.testing.assert_close(far, further, atol=1e-3, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("squashing", ["softsign", "root", "arctan"])
def test_the_degrees_of_a_squashing_keep_the_density_at_walls_finite(squashing, dim):
    """On the way to the wall the log-density settles: the last thousandths change it by thousandths."""
    anchors = torch.randn(4, dim)
    base = StudentT((dim,), profile_of(squashing).degrees)
    mixture = DisjointMixture(Voronoi(anchors), base, embedding=0, squashing=squashing, scale=1.0)
    towards = anchors[0] - anchors[1]
    wall = anchors[1] + towards / mixture.tessellation.gauge(towards[None], torch.tensor([1]))
    near, nearer = (mixture.log_prob(anchors[1] + share * (wall - anchors[1])) for share in (1 - 1e-4, 1 - 1e-6))
    assert nearer.isfinite()
    torch.testing.assert_close(near, nearer, atol=0.05, rtol=0)


def test_nothing_outside_the_box():
    mixture = plain(boxed, StudentT, 2)
    x = torch.tensor([[3.9, 3.9], [4.1, 0.0], [0.0, -1e6]])
    assert mixture.log_prob(x).isfinite().tolist() == [True, False, False]
    with pytest.raises(ValueError, match="x: 2 of 3 points lie outside the box, where the density is 0"):
        mixture.initialize(x)


@pytest.mark.parametrize("tessellation", [voronoi, laguerre, boxed, boxed_laguerre], ids=lambda make: make.__name__)
def test_initialize_places_anchors_weights_and_scale(tessellation):
    """Five far clusters of different sizes: an anchor in each, weights as the rows, most rows likely at once."""
    centres = torch.tensor([[-3.0, -3.0], [3.0, -3.0], [0.0, 0.0], [-3.0, 3.0], [3.0, 3.0]])
    rows = torch.tensor([400, 300, 200, 80, 20])
    x = centres.repeat_interleave(rows, 0) + 0.05 * torch.randn(1000, 2)
    mixture = DisjointMixture(tessellation(2), Gaussian((2,)), embedding=0)
    mixture.initialize(x)
    nearest = torch.cdist(centres, mixture.tessellation.anchors.detach()).min(1)
    assert nearest.values.max() < 0.1
    torch.testing.assert_close(mixture.log_weights().exp()[nearest.indices], rows / 1000.0, atol=5e-3, rtol=0)
    share = rows / 1000.0
    truth = -(share * share.log()).sum() + torch.tensor(2 * torch.pi * torch.e * 0.05**2).log()
    assert -mixture.log_prob(x).mean() < truth + 0.3


def test_initialize_gives_every_cell_its_covariance():
    """Two far clusters, thin along different directions: with an affine map for each, a Gaussian is near the truth."""
    turns = torch.tensor([[[1.0, 0.0], [0.95, 0.1]], [[1.0, 0.0], [-0.95, 0.1]]])
    which = torch.randint(2, (4000,))
    x = torch.tensor([[-4.0, 0.0], [4.0, 0.0]])[which] + (turns[which] @ torch.randn(4000, 2, 1))[..., 0]
    truth = torch.tensor(2.0).log() + torch.tensor(2 * torch.pi * torch.e).log() + torch.tensor(0.1).log()

    def start(**options):
        mixture = DisjointMixture(Voronoi.create(2, 2), Gaussian((2,)), embedding=0, squashing=8.0, **options)
        mixture.initialize(x, anchors=torch.tensor([[-4.0, 0.0], [4.0, 0.0]]))
        torch.testing.assert_close(mixture.tessellation.anchors.detach(), torch.tensor([[-4.0, 0.0], [4.0, 0.0]]))
        return -mixture.log_prob(x).mean().item()

    assert start(affine=True) == pytest.approx(truth.item(), abs=0.1)
    assert start() > truth + 1


def test_moments_of_small_cells_are_drawn_to_those_of_all_points():
    """A thousand points in one cell have their own covariance; one point alone in a cell has that of all."""
    points = torch.cat([torch.randn(1000, 2) * torch.tensor([1.0, 3.0]), torch.tensor([[5.0, 5.0]])])
    means, covariances = moments(points, torch.tensor([0] * 1000 + [1]), 3)
    torch.testing.assert_close(means[1], torch.tensor([2.5, 2.5]))
    torch.testing.assert_close(covariances[0], torch.diag(torch.tensor([1.0, 9.0])), atol=0.8, rtol=0)
    torch.testing.assert_close(covariances[2], torch.diag(torch.tensor([1.0, 9.0])), atol=0.8, rtol=0)
    assert torch.linalg.eigvalsh(covariances).min() > 0


def test_initialize_leaves_fixed_anchors_and_reaches_nested_ones():
    fixed = Voronoi(anchors(2), learnable=False)
    inner = DisjointMixture(voronoi(2), Gaussian((2,)), embedding=0)
    mixture = DisjointMixture(fixed, inner, embedding=0)
    mixture.initialize(torch.randn(200, 2))
    torch.testing.assert_close(fixed.anchors, anchors(2))
    assert (inner.tessellation.anchors - anchors(2)).abs().min() > 1e-3


def test_initialize_with_a_point_for_each_cell_keeps_the_scale():
    mixture = DisjointMixture(Voronoi.create(4, 2), Gaussian((2,)), embedding=0)
    mixture.initialize(torch.randn(4, 2))
    torch.testing.assert_close(mixture.map.log_scale.exp(), torch.full((4,), 0.2))


def test_a_mixture_for_contexts_wants_one():
    mixture = DisjointMixture(Voronoi.create(3, 2), Gaussian((2,)), embedding=0, context=4)
    with pytest.raises(TypeError, match=r"context: got None; expected \(\*batch, 4\)"):
        mixture.log_prob(torch.zeros(5, 2))


@torch.no_grad()
def test_weights_depend_on_the_context():
    mixture = perturbed(DisjointMixture(Voronoi.create(3, 2), Gaussian((2,)), embedding=0, context=4), size=1.0)
    context = torch.randn(4).expand(20_000, 4)
    shares = torch.bincount(mixture.tessellation.nearest(mixture.sample((20_000,), context)), minlength=3) / 20_000
    torch.testing.assert_close(shares, mixture.log_weights(context[0]).exp(), atol=0.015, rtol=0)
    assert (shares - mixture.log_weights(-context[0]).exp()).abs().max() > 0.05


def test_spread_needs_as_many_points_as_cells():
    with pytest.raises(ValueError, match="x: got 3 different points; expected at least one for each of 4 cells"):
        spread(torch.eye(3).repeat(5, 1), 4)
    found = spread(torch.eye(3).repeat(5, 1), 3)
    assert torch.cdist(found, torch.eye(3)).min(0).values.max() == 0


@torch.no_grad()
def test_as_a_torch_distribution(make):
    mixture = make(2)
    distribution = mixture.as_distribution()
    x = distribution.sample((4, 3))
    assert x.shape == (4, 3, *distribution.event_shape)
    shifted = torch.distributions.TransformedDistribution(
        distribution, [torch.distributions.AffineTransform(torch.tensor([1.0, 2.0]), 2.0, event_dim=1)]
    )
    expected = mixture.log_prob(x) - 2 * torch.tensor(2.0).log()
    torch.testing.assert_close(shifted.log_prob(2 * x + torch.tensor([1.0, 2.0])), expected)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: DisjointMixture(Voronoi.create([3, 2], 2), Gaussian((2,))),
            "tessellation: got one per variable, of 2",
        ),
        (lambda: DisjointMixture(Voronoi.create(3, 2), Gaussian((3,))), "component: got a density of points"),
        (lambda: DisjointMixture(Voronoi.create(3, 2), Gaussian((2,)), scale=0.0), "scale: got 0.0; expected"),
        (lambda: FlowMixture(Gaussian((2,)), 0), "components: got 0; expected at least 1"),
    ],
    ids=["per-variable", "dimension", "scale", "none"],
)
def test_errors_say_what_was_expected(build, message):
    with pytest.raises(ValueError, match=message):
        build()
