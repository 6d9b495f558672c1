"""Laws of the Triton kernels against the plain searches, run by `test_search_triton.py` in a process of their own.

Answers are compared by their values in double precision: among walls or anchors that agree to rounding any will do.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.geometry.test_tessellation import TESSELLATIONS, cells_of, points_of
from torch import Tensor

from tessella import CellBijection, Voronoi
from tessella.geometry import kernels, placing_triton, search, search_triton

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # there, Triton's interpreter

SHAPES = {  # G, D, M, K
    "one of each": (1, 1, 1, 1),
    "one point": (1, 5, 1, 40),
    "one cell": (3, 2, 9, 1),
    "ragged": (2, 6, 130, 33),
    "several shares": (2, 3, 5, 150),
    "whole tiles": (1, 4, 512, 16),
    "many dimensions": (1, 37, 20, 18),
    "no points": (2, 3, 0, 4),
}
DTYPES = {"float32": (torch.float32, 1e-5), "bfloat16": (torch.bfloat16, 1e-5), "float64": (torch.float64, 1e-12)}


@pytest.fixture(autouse=True, scope="module")
def everywhere():
    """The kernels search. Nothing is done on import: those who look for doctests import this file, too."""
    kernels.DEVICES.add(DEVICE)
    torch.set_default_device(DEVICE)
    with kernels.triton(True):
        yield


@pytest.fixture(params=["short", "long"])
def tiles(request, monkeypatch):
    """Both kinds of tiles at every shape, and several programs that share the cells."""
    monkeypatch.setattr(search_triton, "CELLS", 64)
    if request.param == "long":
        monkeypatch.setattr(search_triton, "LONG", 0)


def problem(shape: tuple[int, ...], dtype: torch.dtype, weighted: bool = False) -> tuple[Tensor, ...]:
    """Points, cells, anchors, and weights under which every anchor lies in its cell; the last cells do not exist."""
    groups, dim, points, cells = shape
    y, anchors = torch.randn(groups, dim, points).to(dtype), torch.randn(groups, dim, cells).to(dtype)
    weights = (1e-3 * torch.rand(groups, cells)).to(dtype) if weighted else None
    real = cells
    if weights is not None and cells > 2:
        real = cells // 2
        weights[..., real:] = -torch.inf
    return y, torch.randint(real, (groups, points)), anchors, weights


def taken(columns: Tensor, index: Tensor) -> Tensor:
    return columns.double().gather(2, index[:, None].expand(-1, columns.shape[1], -1))


def wall_value(wall: Tensor, y: Tensor, cell: Tensor, anchors: Tensor, weights: Tensor | None) -> Tensor:
    """n_i . y in double precision, 0 where no wall is ahead."""
    gap = taken(anchors, wall) - taken(anchors, cell)
    margin = gap.square().sum(1)
    if weights is not None:
        margin = margin - weights.double().gather(1, wall) + weights.double().gather(1, cell)
    return torch.where(wall == cell, 0, 2 * (gap * y.double()).sum(1) / margin)


def power(index: Tensor, x: Tensor, anchors: Tensor, weights: Tensor | None) -> Tensor:
    """|x - x_i|^2 - w_i in double precision."""
    distance = (x.double() - taken(anchors, index)).square().sum(1)
    return distance if weights is None else distance - weights.double().gather(1, index)


def doubles(*tensors: Tensor | None) -> list[Tensor | None]:
    return [t.double() if t is not None and t.is_floating_point() else t for t in tensors]


def assert_same_answers(y: Tensor, cell: Tensor, anchors: Tensor, weights: Tensor | None, rtol: float) -> None:
    """Of both searches, each against the plain one in double precision."""
    wall, truth = (
        search_triton.active_wall(y, cell, anchors, weights),
        search.active_wall(*doubles(y, cell, anchors, weights)),
    )
    values = [wall_value(i, y, cell, anchors, weights) for i in (wall, truth)]
    torch.testing.assert_close(*values, rtol=rtol, atol=0)
    near, truth = (
        search_triton.nearest_anchor(y, anchors, weights),
        search.nearest_anchor(*doubles(y, anchors, weights)),
    )
    assert near.shape == wall.shape == cell.shape
    assert near.dtype == wall.dtype == torch.int64
    powers = [power(i, y, anchors, weights) for i in (near, truth)]
    torch.testing.assert_close(*powers, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["voronoi", "laguerre"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_find_what_the_plain_searches_find(shape, dtype, weighted, tiles):
    kind, rtol = DTYPES[dtype]
    assert_same_answers(*problem(SHAPES[shape], kind, weighted), rtol)


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 9), st.integers(1, 40), st.booleans())
def test_at_any_small_shape(groups, dim, points, cells, weighted):
    assert_same_answers(*problem((groups, dim, points, cells), torch.float32, weighted), 1e-5)


@pytest.mark.parametrize("name", TESSELLATIONS)
def test_tessellations_are_the_same_in_values_and_gradients(name):
    tessellation = TESSELLATIONS[name]()
    y, cell = points_of(tessellation, 40).requires_grad_(), cells_of(tessellation, 40)

    def answers() -> list[Tensor]:
        h = tessellation.gauge(y, cell)
        wanted = [y, *tessellation.parameters()]
        slopes = torch.autograd.grad(h.square().sum(), wanted, materialize_grads=True)
        return [tessellation.nearest(y), h, *slopes]

    ours = answers()
    with kernels.triton(False):
        for a, b in zip(ours, answers(), strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", TESSELLATIONS)
def test_anchors_are_put_into_their_box_on_the_way_to_the_search(name, tiles):
    tessellation = TESSELLATIONS[name]().float()
    columns = tessellation._anchor_columns().detach()
    groups, _, cells = columns.shape
    found = placing_triton.placed_columns(*tessellation.parts()[:3], groups, cells + 3)
    torch.testing.assert_close(found[..., :cells], columns, rtol=1e-6, atol=1e-6)
    assert found[..., cells:].isinf().all()
    x = points_of(tessellation, 40).float()
    assert kernels.placing(tessellation.to_columns(x), cells)
    weights = tessellation._weights(columns)
    powers = [
        power(tessellation.scalars_to_columns(tessellation.nearest(x)), tessellation.to_columns(x), columns, weights)
        for _ in with_and_without_triton()
    ]
    torch.testing.assert_close(*powers, rtol=1e-6, atol=1e-6)


def with_and_without_triton():
    for enabled in (True, False):
        with kernels.triton(enabled):
            yield


def test_near_anchors_keep_their_digits_in_single_precision(tiles):
    """Walls between anchors 1e-3 apart, far from the origin; and whose of two near anchors is a far point."""
    anchors = torch.tensor([[[30.0, 30.001, 31.0, 30.0], [30.0, 30.0, 30.0, 29.0]]], dtype=torch.float32)
    y = torch.tensor([[[0.01], [0.0]]], dtype=torch.float32)
    assert search_triton.active_wall(y, torch.tensor([[0]]), anchors).item() == 1
    x = torch.tensor([[[-40.0, -40.0], [29.99, 30.01]]], dtype=torch.float32)
    for apart in (1, 16):  # in two rows of a tile, and in the same row of two tiles
        twins = torch.full((1, 2, 40), 1000.0, dtype=torch.float32)
        twins[..., 3] = torch.tensor([30.0, 30.0])
        twins[..., 3 + apart] = torch.tensor([30.0, 30.0001])
        found, truth = search_triton.nearest_anchor(x, twins), search.nearest_anchor(x, twins)
        assert found.tolist() == truth.tolist() == [[3, 3 + apart]]
    twins[..., 4], twins[..., 3 + 16] = torch.tensor([30.0, 30.0001]), 1000.0  # three of one tile
    twins[..., 5] = torch.tensor([30.0, 29.9999])
    found, truth = search_triton.nearest_anchor(x, twins), search.nearest_anchor(x, twins)
    assert found.tolist() == truth.tolist() == [[5, 4]]


def test_degenerate_points_get_an_index_that_exists(tiles):
    anchors = torch.randn(1, 2, 20, dtype=torch.float32)
    anchors[..., 7] = anchors[..., 3]  # coincident: a wall that is nowhere
    y = torch.tensor([[[0.0, torch.nan, torch.inf, 1.0], [0.0, 1.0, 1.0, 0.5]]], dtype=torch.float32)
    cell = torch.full((1, 4), 3)
    wall, near = search_triton.active_wall(y, cell, anchors), search_triton.nearest_anchor(y, anchors)
    for index in (wall, near):
        assert ((index >= 0) & (index < 20)).all()
    assert wall[0, :2].tolist() == [3, 3]  # at the anchor, and nowhere: no wall ahead
    assert wall[0, 3] == search.active_wall(y[..., 3:], cell[:, 3:], anchors)


def test_operators_compile_and_follow_the_transforms_of_torch():
    bijection = CellBijection(Voronoi.create([4, 3], 2))
    y, cell = torch.randn(5, 2, 2), torch.tensor([[0, 2]]).expand(5, 2)
    expected = bijection.forward_and_ladj(y, cell)
    compiled = torch.compile(bijection.forward_and_ladj, fullgraph=True, backend="aot_eager")
    mapped = torch.vmap(bijection.forward_and_ladj)
    for call in (compiled, mapped):
        for a, b in zip(call(y, cell), expected, strict=True):
            torch.testing.assert_close(a, b)
    jacobian = torch.func.jacrev(lambda point: bijection.forward_and_ladj(point, cell[0])[0])(y[0])
    volumes = torch.stack([jacobian[j, :, j].det().abs().log() for j in range(2)])
    torch.testing.assert_close(volumes, expected[1][0])
    anchors = torch.randn(3, 1, 2, 6)  # vmap over anchors, too
    found = torch.vmap(kernels.nearest_anchor)(y[:3, None, 0, :, None], anchors)
    assert torch.equal(
        found, torch.stack([search.nearest_anchor(y[i, None, 0, :, None], anchors[i]) for i in range(3)])
    )
    torch.library.opcheck(kernels._active_wall, (y.permute(1, 2, 0), cell.mT, torch.randn(2, 2, 4), None))


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU with room for five gigabytes")
def test_offsets_beyond_32_bits():
    dim, cells = 33, 2**26
    anchors = torch.ones(1, dim, cells, dtype=torch.bfloat16)
    anchors[..., -1] = 2
    anchors[..., 0] = 0
    x = torch.full((1, dim, 2), 2.0, dtype=torch.bfloat16)
    assert search_triton.nearest_anchor(x, anchors).tolist() == [[cells - 1] * 2]
    assert search_triton.active_wall(x, torch.zeros(1, 2, dtype=torch.int64), anchors).tolist() == [[1, 1]]
