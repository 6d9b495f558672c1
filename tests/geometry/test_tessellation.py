"""Laws of every tessellation, against brute force over all walls."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tessella import Box, Laguerre, Voronoi, checks
from tessella.geometry import PLACEMENTS, Tessellation, binary_dim, search
from tessella.geometry.tessellation import KEPT_FROM_WALL


def laguerre(*args, **kwargs) -> Laguerre:
    tessellation = Laguerre.create(*args, **kwargs)
    torch.nn.init.normal_(tessellation.rho, std=3.0)
    return tessellation


TESSELLATIONS = {
    "shared": lambda: Voronoi.create(7, 3),
    "per-variable": lambda: Voronoi.create([5, 5], 2),
    "ragged": lambda: Voronoi.create([2, 6, 1, 4], 3),
    "boxed": lambda: Voronoi.create([4, 3], 2, box=Box.cube(2.0, 2)),
    "learned-box": lambda: Voronoi.create(6, 2, box=Box.cube(3.0, 2, learnable=True)),
    "laguerre": lambda: laguerre(9, 2),
    "laguerre-ragged-boxed": lambda: laguerre([3, 8, 1], 2, box=Box.cube(2.0, 2)),
    "one-cell": lambda: Voronoi.create(1, 4),
    "one-cell-boxed": lambda: Voronoi.create(1, 4, box=Box.cube(1.0, 4)),
    "line": lambda: Voronoi.create(5, 1, "line"),
}


@pytest.fixture(params=TESSELLATIONS, ids=str)
def tessellation(request) -> Tessellation:
    return TESSELLATIONS[request.param]()


def points_of(tessellation: Tessellation, batch: int = 200, spread: float = 1.5) -> torch.Tensor:
    variables = () if tessellation.shared else (len(tessellation.counts),)
    return torch.randn(batch, *variables, tessellation.dim) * spread


def cells_of(tessellation: Tessellation, batch: int = 200) -> torch.Tensor:
    columns = [torch.randint(count, (batch,)) for count in tessellation.counts]
    return columns[0] if tessellation.shared else torch.stack(columns, -1)


def powers(tessellation: Tessellation, x: torch.Tensor) -> torch.Tensor:
    """|x - x_i|^2 - w_i for all i, (*batch, [N,] K)."""
    return (x.unsqueeze(-2) - tessellation.anchors).square().sum(-1) - tessellation.weights


def brute_gauge(tessellation: Tessellation, y: torch.Tensor, cell: torch.Tensor) -> torch.Tensor:
    """max(0, max_i n_i . y) with every wall written out."""
    here = tessellation.anchor_of(cell)
    step = tessellation.anchors - here.unsqueeze(-2)
    weights = tessellation.weights.expand(*cell.shape, -1)
    margin = step.square().sum(-1) - weights + weights.gather(-1, cell.unsqueeze(-1))
    h = (2 * (step * y.unsqueeze(-2)).sum(-1) / margin.masked_fill(margin == 0, torch.inf)).amax(-1).clamp_min(0)
    if tessellation.box is not None:
        lo, hi = tessellation.box.bounds()
        h = torch.maximum(h, torch.maximum(y / (hi - here), y / (lo - here)).amax(-1))
    return h


def test_nearest_is_the_brute_force_minimum(tessellation):
    x = points_of(tessellation)
    torch.testing.assert_close(tessellation.nearest(x), powers(tessellation, x).argmin(-1))


def test_gauge_is_the_brute_force_maximum_with_its_gradients(tessellation):
    cell = cells_of(tessellation)
    y = points_of(tessellation).requires_grad_()
    ours, brute = tessellation.gauge(y, cell), brute_gauge(tessellation, y, cell)
    torch.testing.assert_close(ours, brute)
    wanted = [y, *tessellation.parameters()]
    weight = torch.randn_like(ours)
    for a, b in zip(
        torch.autograd.grad((ours * weight).sum(), wanted, allow_unused=True),
        torch.autograd.grad((brute * weight).sum(), wanted, allow_unused=True),
        strict=True,
    ):
        torch.testing.assert_close(a if a is not None else torch.zeros(()), b if b is not None else torch.zeros(()))


def test_gauge_is_positively_homogeneous_and_convex(tessellation):
    cell, y, z = cells_of(tessellation), points_of(tessellation), points_of(tessellation)
    gauge = tessellation.gauge
    torch.testing.assert_close(gauge(3.7 * y, cell), 3.7 * gauge(y, cell))
    assert (gauge((y + z) / 2, cell) <= (gauge(y, cell) + gauge(z, cell)) / 2 + 1e-12).all()


def test_gauge_below_one_says_the_same_as_nearest(tessellation):
    cell, x = cells_of(tessellation), points_of(tessellation)
    h = tessellation.gauge(x - tessellation.anchor_of(cell), cell)
    inside = tessellation.nearest(x) == cell
    if tessellation.box is not None:
        lo, hi = tessellation.box.bounds()
        inside &= ((x > lo) & (x < hi)).all(-1)
    assert torch.equal(h < 1, inside)


def test_every_anchor_lies_in_its_own_cell(tessellation):
    for k in range(max(tessellation.counts)):
        cell = torch.tensor([min(k, count - 1) for count in tessellation.counts])
        cell = cell[0] if tessellation.shared else cell
        assert torch.equal(tessellation.nearest(tessellation.anchor_of(cell)), cell)


def test_blocks_and_tiles_change_nothing(tessellation, monkeypatch):
    cell, x = cells_of(tessellation), points_of(tessellation)
    before = tessellation.gauge(x, cell), tessellation.nearest(x)
    monkeypatch.setattr(search, "CELLS_PER_BLOCK", 2)
    monkeypatch.setitem(search.SCORES_PER_TILE, "cpu", 16)
    torch.testing.assert_close(tessellation.gauge(x, cell), before[0])
    assert torch.equal(tessellation.nearest(x), before[1])


@given(
    batch=st.lists(st.integers(0, 4), max_size=2),
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    dim=st.integers(1, 5),
    kind=st.sampled_from([Voronoi, Laguerre]),
)
def test_any_batch_shape(batch, counts, dim, kind):
    tessellation = kind.create(counts, dim)
    x = torch.randn(*batch, len(counts), dim)
    cell = tessellation.nearest(x)
    assert cell.shape == (*batch, len(counts))
    assert (cell < torch.tensor(counts)).all()
    torch.testing.assert_close(tessellation.gauge(x, cell), brute_gauge(tessellation, x, cell))


def test_memory_kept_for_backward_does_not_grow_with_cells():
    def kept(cells: int) -> int:
        tessellation, total = Voronoi.create(cells, 4), 0

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal total
            total += tensor.numel()
            return tensor

        cell = torch.randint(cells, (512,))
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            tessellation.gauge(torch.randn(512, 4, requires_grad=True), cell)
        return total

    few, many = kept(3), kept(300)
    assert few < 10 * 512 * 4
    assert many - few <= 2 * (300 - 3) * 4  # the anchors themselves, nothing per point


def test_laguerre_margins_are_positive_whatever_the_weights():
    for std in (0.1, 1.0, 10.0, 100.0):
        tessellation = Laguerre.create([40, 7], 3)
        torch.nn.init.normal_(tessellation.rho, std=std)
        for j, count in enumerate(tessellation.counts):
            anchors, w = tessellation.anchors[j, :count], tessellation.weights[j, :count]
            margin = torch.cdist(anchors, anchors).square() - w + w[:, None]
            assert (margin[~torch.eye(count, dtype=torch.bool)] > 0).all()


def test_anchors_stay_inside_their_box():
    tessellation = Voronoi.create(
        [4, 4], 2, box=Box(torch.tensor([-1.0, 0.0]), torch.tensor([1.0, 5.0]), learnable=True)
    )
    with torch.no_grad():
        for parameter in tessellation.parameters():
            parameter.add_(torch.randn_like(parameter) * 30)
        tessellation.box.log_radius.clamp_(-3, 3)
    lo, hi = tessellation.box.bounds()
    room = KEPT_FROM_WALL / 2 * (hi - lo) / 2
    assert ((tessellation.anchors > lo + room) & (tessellation.anchors < hi - room)).all()


def test_placements_recover_the_classical_cells():
    """Figure 3 of the paper: ordinal, simplex and binary argmax cells are Voronoi cells of fixed anchors."""
    x = torch.randn(500, 4) * 2
    line = Voronoi.create(5, 1, "line", learnable=False)
    torch.testing.assert_close(
        line.nearest(x[:, :1]), torch.bucketize(x[:, 0].contiguous(), torch.tensor([-1.5, -0.5, 0.5, 1.5]))
    )
    simplex = Voronoi.create(5, 4, "simplex", learnable=False)
    torch.testing.assert_close(simplex.nearest(x), (x @ simplex.anchors.T).argmax(-1))
    gram = simplex.anchors @ simplex.anchors.T
    torch.testing.assert_close(gram, torch.where(torch.eye(5, dtype=torch.bool), 1.0, -0.25))
    cube = Voronoi.create(16, 4, "hypercube", learnable=False)
    torch.testing.assert_close(cube.nearest(x), ((x > 0).long() * 2 ** torch.arange(4)).sum(-1))
    assert [binary_dim(k) for k in (1, 2, 3, 4, 5, 256, 257)] == [1, 1, 2, 2, 3, 8, 9]
    assert not list(line.parameters())


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_placements_give_distinct_anchors(placement):
    for cells in range(1, 10):
        Voronoi.create(cells, max(1, cells - 1), placement).check()


def test_near_anchors_far_from_the_origin_keep_their_walls_in_single_precision():
    """Margins come from differences: the wall between anchors 1e-3 apart is found far from the origin."""
    anchors = torch.tensor([[30.0, 30.0], [30.001, 30.0], [31.0, 30.0], [30.0, 29.0]], dtype=torch.float32)
    y = torch.tensor([[0.01, 0.0]], dtype=torch.float32)
    expected = 2 * 0.01 / (anchors[1, 0] - anchors[0, 0]).item()
    assert Voronoi(anchors).gauge(y, torch.tensor([0])).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("cells", [7, 128, 300])
@pytest.mark.parametrize("dim", [1, 6, 63])
@pytest.mark.parametrize("kind", [Voronoi, Laguerre])
def test_single_precision_finds_the_walls_of_double_precision(kind, dim, cells):
    double = kind.create(cells, dim)
    single = kind(double.anchors.detach().float())
    y, cell = torch.randn(400, dim), torch.randint(cells, (400,))
    truth = brute_gauge(kind(single.anchors.detach().double()), y.float().double(), cell)
    torch.testing.assert_close(single.gauge(y.float(), cell).double(), truth, rtol=1e-3, atol=1e-5)
    assert torch.equal(single.nearest(single.anchors), torch.arange(cells))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [1, 6, 63, 1000])
def test_squared_distances_keep_their_digits_and_are_never_positive_between_equals(dtype, dim):
    a = 100 + torch.randn(2, dim, 40).to(dtype)
    b = torch.cat([a, a + 1e-2 * torch.randn(2, dim, 40).to(dtype)], -1)
    found = search.squared_distances(a, b)
    truth = (a.double().mT[:, :, None] - b.double().mT[:, None]).square().sum(-1)
    assert (found[truth == 0] <= 0).all()
    lost = 4 * (dim + 4) * torch.finfo(torch.float64).eps * float(b.double().square().sum(1).max())
    torch.testing.assert_close(found.double(), truth, rtol=1e-6 if dtype == torch.float32 else 1e-12, atol=lost)


@pytest.mark.parametrize("cells", [1, 31, 128, 129, 765])
def test_the_maximum_in_passes_is_the_maximum(cells):
    scores = torch.randn(3, 20, cells)
    scores[0, 0] = 0  # all alike
    scores[0, 1, -1] = 9
    for dim, values in ((-1, scores), (1, scores.mT.contiguous())):
        best, index = search._max(values.clone(), dim)
        assert torch.equal(best, values.amax(dim, keepdim=True))
        assert torch.equal(values.gather(dim, index), best)


def test_coincident_anchors_are_named_and_make_no_nan():
    anchors = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    for kind in (Voronoi, Laguerre):
        tessellation = kind(anchors)
        with pytest.raises(ValueError, match=r"cells \[0, 2\] share one anchor"):
            tessellation.check()
        y = torch.randn(50, 2, requires_grad=True)
        h = tessellation.gauge(y, torch.zeros(50, dtype=torch.int64))
        h.sum().backward()
        assert h.isfinite().all()
        assert y.grad.isfinite().all()
        assert all(p.grad.isfinite().all() for p in tessellation.parameters())


BAD_INPUT = {
    "K < 1": (lambda: Voronoi(torch.zeros(0, 2)), "anchors.*K >= 1"),
    "cells < 1": (lambda: Voronoi.create([3, 0], 2), "cells: got 0"),
    "anchors of integers": (
        lambda: Voronoi(torch.zeros(2, 2, dtype=torch.int64)),
        "anchors: got a tensor of torch.int64",
    ),
    "anchors not finite": (lambda: Voronoi(torch.tensor([[0.0], [torch.nan]])), "anchors: 1 of 2 values"),
    "cells for shared": (lambda: Voronoi(torch.zeros(2, 2), cells=[2]), "cells: got 1 numbers"),
    "too many cells": (lambda: Voronoi(torch.zeros(1, 2, 2), cells=[3]), "cells: got 3 for variable 0"),
    "hi <= lo": (lambda: Box(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.0])), r"lo = 1 and hi = 1 at \[1\]"),
    "box shapes": (lambda: Box(torch.zeros(2), torch.ones(3)), r"lo, hi: got shapes \(2,\) and \(3,\)"),
    "box of other dimension": (lambda: Voronoi(torch.zeros(1, 2), box=Box.cube(1.0, 3)), "box: got corners of shape"),
    "anchor outside box": (lambda: Voronoi(torch.tensor([[2.0]]), box=Box.cube(1.0, 1)), "anchors: some lie"),
    "placement": (lambda: Voronoi.create(2, 2, "circle"), "placement: got 'circle'; expected one of random"),
    "simplex too small": (lambda: Voronoi.create(5, 2, "simplex"), "dim: got 2; expected at least 4"),
    "hypercube too small": (lambda: Voronoi.create(5, 2, "hypercube"), "dim: got 2; expected at least ceil"),
    "wrong D": (
        lambda: Voronoi.create(3, 2).nearest(torch.zeros(4, 3)),
        r"x: got shape \(4, 3\); expected \(\*batch, D\)",
    ),
    "wrong N": (lambda: Voronoi.create([3, 3], 2).nearest(torch.zeros(3, 2)), r"\(\*batch, N, D\) = \(\*batch, 2, 2\)"),
    "wrong dtype": (lambda: Voronoi.create(3, 2).nearest(torch.zeros(4, 2).float()), "x: got torch.float32; expected"),
    "not a tensor": (lambda: Voronoi.create(3, 2).nearest([0.0, 0.0]), "x: got list"),
    "nan": (lambda: Voronoi.create(3, 1).nearest(torch.tensor([[torch.nan]])), "x: 1 of 1 values are NaN"),
    "inf": (lambda: Voronoi.create(3, 1).gauge(torch.tensor([[torch.inf]]), torch.tensor([0])), "y: 1 of 1 values"),
    "cell too large": (
        lambda: Voronoi.create([3, 2], 1).gauge(torch.zeros(1, 2, 1), torch.tensor([[0, 2]])),
        r"cell: value 2 at \[0, 1\] is out of range; expected 0 <= cell < 2",
    ),
    "cell negative": (lambda: Voronoi.create(3, 1).gauge(torch.zeros(1, 1), torch.tensor([-1])), "cell: value -1"),
    "cell floating": (lambda: Voronoi.create(3, 1).gauge(torch.zeros(1, 1), torch.zeros(1)), "cell: got a tensor of"),
    "cell shape": (lambda: Voronoi.create(3, 1).gauge(torch.zeros(2, 1), torch.tensor([0])), r"cell: got shape \(1,\)"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_named(case):
    call, message = BAD_INPUT[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_value_checks_can_be_switched_off_and_return():
    tessellation, bad = Voronoi.create(3, 1), torch.tensor([[torch.nan]])
    with checks.values(False):
        tessellation.nearest(bad)
    with pytest.raises(ValueError, match="NaN"):
        tessellation.nearest(bad)
