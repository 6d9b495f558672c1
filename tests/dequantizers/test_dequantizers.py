"""Laws of every dequantizer."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tessella.data.tables.shape import TableShape
from tessella.densities import CouplingConfig, FlatCouplingConfig
from tessella.dequantizers import CellsConfig, ConditionalNoise, Dequantizer, FixedNoise
from tessella.dequantizers.dequantizer import projected
from tessella.models import FlowConfig

COUNTS = (3, 1, 5, 2)


def perturbed(module, size: float = 0.15):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(size * torch.randn_like(parameter))
    return module


def small_noise(base: str = "gaussian") -> ConditionalNoise:
    return ConditionalNoise(width=8, context=4, base=base)


def dequantizer_of(name: str, counts=COUNTS, noise=None, density=None, **cells) -> Dequantizer:
    config = FlowConfig(CellsConfig.named(name, **cells), noise or small_noise(), density or CouplingConfig())
    return perturbed(config.build(TableShape(tuple(counts)))).dequantizer


CELLS = tuple(CellsConfig.kinds)
CASES = {name: lambda name=name: dequantizer_of(name) for name in CELLS} | {
    "ordinal-uniform": lambda: dequantizer_of("ordinal", noise=FixedNoise()),
    "voronoi-boxed": lambda: dequantizer_of("voronoi", box=3.0),
    "voronoi-flat": lambda: dequantizer_of("voronoi", noise=small_noise("student"), density=FlatCouplingConfig()),
    "laguerre-ball": lambda: dequantizer_of("laguerre", noise=small_noise("ball")),
}


@pytest.fixture(params=CASES)
def dequantizer(request):
    return CASES[request.param]()


def rows(n: int, counts=COUNTS) -> torch.Tensor:
    return torch.stack([torch.randint(count, (n,)) for count in counts], -1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_quantize_undoes_dequantize_always(dequantizer, dtype):
    dequantizer = dequantizer.to(dtype)
    codes = rows(20_000)
    x, log_q = dequantizer.dequantize(codes)
    assert torch.equal(dequantizer.quantize(x)[0], codes)
    assert log_q.isfinite().all()


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("scale", [30.0, 1e3, 1e5])
def test_even_when_the_noise_is_far_out(name, scale):
    """Noise so large that single precision puts points on the walls: they are projected into their region."""
    dequantizer = dequantizer_of(name).float()
    codes = rows(5_000)
    u = scale * torch.randn(5_000, len(COUNTS), dequantizer.cells.dim, dtype=torch.float32)
    x = projected(dequantizer.cells, dequantizer.cells.forward(u, codes)[0], codes)
    assert torch.equal(dequantizer.quantize(x)[0], codes)


def test_log_q_of_the_points_is_the_one_returned(dequantizer):
    codes = rows(300)
    x, log_q = dequantizer.dequantize(codes)
    torch.testing.assert_close(dequantizer.log_prob(x, codes), log_q, rtol=1e-6, atol=1e-6)


def test_ladj_is_the_log_determinant(dequantizer):
    cells = dequantizer.cells
    codes = rows(6)
    u = torch.randn(6, len(COUNTS), cells.dim)
    x, ladj = cells.forward(u, codes)
    size = u[0].numel()
    for b in range(6):
        j = torch.autograd.functional.jacobian(lambda p, b=b: cells.forward(p[None], codes[b : b + 1])[0][0], u[b])
        torch.testing.assert_close(torch.linalg.slogdet(j.reshape(size, size))[1], ladj[b].sum())
    back, back_ladj = cells.inverse(x, codes)
    torch.testing.assert_close(back, u, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(back_ladj, -ladj, rtol=1e-6, atol=1e-7)


@torch.no_grad()
@pytest.mark.parametrize("name", ["voronoi", "laguerre", "simplex", "binary-argmax", "argmax", "ordinal"])
def test_q_integrates_to_one_on_its_own_region(name):
    """Quadrature over the plane: q(. | c) has mass 1, all of it where quantize says c; space may be nobody's."""
    counts = {"simplex": (3,), "argmax": (2,), "ordinal": (3,)}.get(name, (4,))
    dequantizer, steps, side = dequantizer_of(name, counts, dim=2), 500, 20
    if name in ("voronoi", "laguerre"):
        dequantizer.cells.narrow(0.3)  # where the noise reaches the walls, mass gathers there, too close for a grid
    axis = (torch.arange(steps) + 0.5) / steps * side - side / 2
    x = torch.cartesian_prod(axis, axis)[:, None]  # (P, 1, 2)
    (codes,) = dequantizer.quantize(x)
    mass = dequantizer.log_prob(x, codes).exp() * (side / steps) ** 2
    for code in range(counts[0]):
        assert mass[codes[:, 0] == code].sum().item() == pytest.approx(1.0, abs=0.02)


def test_gradients_are_finite_at_the_centre_and_at_the_wall(dequantizer):
    codes = rows(200)
    for scale in (0.0, 1e-12, 1.0, 1e6):
        u = (scale * torch.randn(200, len(COUNTS), dequantizer.cells.dim)).requires_grad_()
        x, ladj = dequantizer.cells.forward(u, codes)
        (x.tanh().sum() + ladj.sum()).backward()
        assert u.grad.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in dequantizer.parameters())


@given(counts=st.lists(st.integers(1, 9), min_size=1, max_size=5), name=st.sampled_from(sorted(CELLS)))
def test_any_ragged_table(counts, name):
    dequantizer = dequantizer_of(name, tuple(counts))
    codes = rows(20, counts)
    x, _ = dequantizer.dequantize(codes)
    assert torch.equal(dequantizer.quantize(x)[0], codes)
    assert (dequantizer.quantize(3 * torch.randn_like(x))[0] < torch.tensor(counts)).all()


def test_every_code_of_a_small_table_has_a_region():
    for name in CELLS:
        dequantizer = dequantizer_of(name)
        codes = torch.tensor(list(product(*map(range, COUNTS))))
        assert torch.equal(dequantizer.cells.quantize(dequantizer.cells.centre(codes).to(torch.float64)), codes)


def test_dimensions_of_the_fixed_geometries():
    sizes = {name: CellsConfig.named(name).build([9, 3]).dim for name in CELLS}
    assert sizes == {"voronoi": 4, "laguerre": 4, "simplex": 8, "argmax": 9, "binary-argmax": 4, "ordinal": 1}


def test_one_tessellation_can_serve_all_variables():
    dequantizer = dequantizer_of("voronoi", (4, 4, 4), shared=True)
    assert dequantizer.cells.map.tessellation.anchors.shape == (4, 4)
    codes = rows(500, (4, 4, 4))
    dequantizer.cells.arrange(codes)
    x, log_q = dequantizer.dequantize(codes)
    assert torch.equal(dequantizer.quantize(x)[0], codes)
    torch.testing.assert_close(dequantizer.log_prob(x, codes), log_q)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"shared: got variables of \[2, 3\] categories; expected equally many"):
        CellsConfig.named("voronoi", dim=2, shared=True).build([2, 3])
    with pytest.raises(ValueError, match="dim: got 2; expected at least 8, which SimplexCells of 9 categories need"):
        CellsConfig.named("simplex", dim=2).build([9, 3])
    with pytest.raises(ValueError, match="CellsConfig: got 'hexagons'; expected one of voronoi, laguerre"):
        CellsConfig.named("hexagons")
    with pytest.raises(ValueError, match="values: got some beside the codes; expected none"):
        dequantizer_of("voronoi").dequantize(rows(1), torch.zeros(1, 1))
    with pytest.raises(ValueError, match=r"codes: value 5 at \[0, 2\] is out of range; expected 0 <= codes < 5"):
        dequantizer_of("voronoi").dequantize(torch.tensor([[0, 0, 5, 0]]))
    with pytest.raises(ValueError, match=r"codes: got shape \(1, 2\)"):
        dequantizer_of("voronoi").dequantize(torch.tensor([[0, 0]]))
