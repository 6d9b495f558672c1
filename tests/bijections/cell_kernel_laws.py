"""Laws of the cell map in Triton against the same map in PyTorch, run by `test_cell_triton.py` in another process."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bijections.test_cell_map import MAPS, laguerre, problem
from tests.geometry.kernel_laws import everywhere  # noqa: F401  # a fixture of all laws here
from torch import Tensor

from tessella import Box, CellBijection, Voronoi
from tessella.bijections import cell_triton
from tessella.geometry import kernels


@pytest.fixture
def launches(monkeypatch) -> list[str]:
    """The kernels that were launched."""
    seen: list[str] = []
    for name in ("forward", "backward"):
        program = getattr(cell_triton, name)
        monkeypatch.setattr(cell_triton, name, lambda *args, n=name, f=program: seen.append(n) or f(*args))
    return seen


def derivatives(bijection: CellBijection, x: Tensor, cell: Tensor, out: bool) -> list[Tensor]:
    """Image, ladj, and the gradients of both with respect to points and parameters."""
    x = x.detach().clone().requires_grad_()
    image, ladj = (bijection.inverse_and_ladj if out else bijection.forward_and_ladj)(x, cell)
    loss = (image * torch.linspace(-1, 1, image.numel()).to(image).reshape(image.shape)).sum() + ladj.square().sum()
    found = torch.autograd.grad(loss, [x, *bijection.parameters()], materialize_grads=True)
    return [image.detach(), ladj.detach(), *found]


def assert_same(bijection: CellBijection, x: Tensor, cell: Tensor, out: bool) -> None:
    """Kernels in single precision against PyTorch in double, relative to the largest value, or gradient, of all.

    The gradient of the centre of a box is a sum of larger numbers, which almost cancel.
    """
    found = derivatives(bijection.float(), x.float(), cell, out)
    truth = derivatives(bijection.double(), x.float().double(), cell, out)
    for which in (slice(0, 1), slice(1, 2), slice(2, None)):
        size = max(float(b.abs().max()) for b in truth[which]) + 1e-3
        for a, b in zip(found[which], truth[which], strict=True):
            assert a.shape == b.shape
            assert a.dtype == torch.float32
            assert float((a - b).abs().max()) <= 5e-5 * size


@pytest.mark.parametrize("pairs", [0, cell_triton.PAIRS], ids=["search before", "search inside"])
@pytest.mark.parametrize("out", [False, True], ids=["into", "out"])
@pytest.mark.parametrize("name", MAPS)
def test_values_and_gradients_are_those_of_pytorch(name, out, pairs, launches, monkeypatch):
    monkeypatch.setattr(cell_triton, "PAIRS", pairs)
    bijection = MAPS[name]()
    x, cell = problem(bijection, False, rows=70)  # more than a tile
    if out:  # not close to a wall, where single precision has no digits left
        x = bijection.forward_and_ladj(x, cell)[0].detach().lerp(bijection.tessellation.anchor_of(cell).detach(), 0.5)
    launches.clear()
    assert_same(bijection, x, cell, out)
    assert launches == ["forward", "backward"]  # double precision is left to PyTorch


@settings(max_examples=8, deadline=None)
@given(
    cells=st.lists(st.integers(1, 20), min_size=1, max_size=3),
    dim=st.integers(1, 5),
    rows=st.integers(0, 5),
    boxed=st.booleans(),
    power=st.sampled_from([1.0, 2.0, 4.5]),
    kind=st.sampled_from([Voronoi.create, laguerre]),
)
def test_at_any_small_shape(cells, dim, rows, boxed, power, kind):
    bijection = CellBijection(kind(cells, dim, box=Box.cube(3.0, dim, learnable=True) if boxed else None), power)
    x, cell = problem(bijection, False, rows)
    if rows:
        assert_same(bijection, x, cell, False)
    else:
        assert bijection.float().forward_and_ladj(x.float(), cell)[0].shape == x.shape


@pytest.mark.parametrize("power", [1.0, 8.0])
@pytest.mark.parametrize("boxed", [False, True])
def test_finite_from_1e_minus_30_to_1e30(power, boxed):
    tessellation = Voronoi.create(8, 3, box=Box.cube(3.0, 3) if boxed else None)
    bijection = CellBijection(tessellation, power).float()
    size = torch.cat([torch.zeros(1), 10.0 ** torch.arange(-30, 31)]).float()
    x = torch.randn(len(size), 3).float() * size[:, None]
    cell = torch.randint(8, (len(size),))
    z = bijection.forward_and_ladj(x, cell)[0]
    torch.testing.assert_close(z[0], tessellation.anchors[cell[0]])
    for out, points in ((False, x), (True, z)):
        points = points.detach().clone().requires_grad_()
        image, ladj = (bijection.inverse_and_ladj if out else bijection.forward_and_ladj)(points, cell)
        (image.sum() + ladj.sum()).backward()
        assert ladj.isfinite().all()
        assert points.grad.isfinite().all()
        assert all(p.grad.isfinite().all() for p in bijection.parameters())


def test_what_is_not_covered_is_left_to_pytorch(launches):
    x, cell = torch.randn(6, 2).float(), torch.zeros(6, dtype=torch.int64)
    for squashing in ("arctan", "exponential"):
        CellBijection(Voronoi.create(3, 2), squashing).float().forward_and_ladj(x, cell)
    CellBijection(Voronoi.create(3, 2), 3.0, learn_power=True).float().forward_and_ladj(x, cell)
    bijection = CellBijection(Voronoi.create(3, 2)).float()
    torch.use_deterministic_algorithms(True)
    bijection.forward_and_ladj(x, cell)
    torch.use_deterministic_algorithms(False)
    with kernels.triton(False):
        bijection.forward_and_ladj(x, cell)
    assert not launches
    bijection.forward_and_ladj(x, cell)
    assert launches == ["forward"]


def test_compilers_transforms_and_second_derivatives():
    bijection = CellBijection(Voronoi.create([4, 3], 2, box=Box.cube(3.0, 2))).float()
    x, cell = torch.randn(5, 2, 2).float(), torch.tensor([[0, 2]]).expand(5, 2)  # cells that are not contiguous
    expected = bijection.forward_and_ladj(x, cell)
    compiled = torch.compile(bijection.forward_and_ladj, fullgraph=True, backend="aot_eager")
    for call in (compiled, torch.vmap(bijection.forward_and_ladj)):
        torch.testing.assert_close(call(x, cell), expected)
    jacobian = torch.func.jacrev(lambda point: bijection.forward_and_ladj(point, cell[0])[0])(x[0])
    volumes = torch.stack([jacobian[j, :, j].det().abs().log() for j in range(2)])
    torch.testing.assert_close(volumes, expected[1][0], rtol=1e-4, atol=1e-5)

    def curvature(on: bool) -> Tensor:
        point = x.mT.contiguous().mT.requires_grad_()  # points that are not contiguous
        with kernels.triton(on):
            (slope,) = torch.autograd.grad(bijection.forward_and_ladj(point, cell)[1].sum(), point, create_graph=True)
            return torch.autograd.grad(slope.square().sum(), point)[0]

    torch.testing.assert_close(curvature(True), curvature(False), rtol=1e-4, atol=1e-5)


def test_gradients_twice_and_of_points_alone():
    bijection = CellBijection(Voronoi.create(5, 2, learnable=False), learn_scale=False).float()
    x, cell = torch.randn(9, 2).float().requires_grad_(), torch.randint(5, (9,))
    image, ladj = bijection.forward_and_ladj(x, cell)
    loss = image.square().sum() + ladj.sum()
    first, second = (torch.autograd.grad(loss, x, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
