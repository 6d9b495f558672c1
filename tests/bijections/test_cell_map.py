"""The cell map with gradients by hand against the same map by automatic differentiation."""

import pytest
import torch
from torch import Tensor

from tessella import Box, CellBijection, Laguerre, Voronoi, checks
from tessella.bijections import cell_layout, cell_map


def laguerre(*args, **kwargs) -> Laguerre:
    tessellation = Laguerre.create(*args, **kwargs)
    torch.nn.init.normal_(tessellation.rho, std=2.0)
    return tessellation


def boxes() -> Box:
    corners = torch.tensor([[-2.0, -3.0], [-2.5, -2.0], [-1.5, -2.0]])
    return Box(corners, -corners, learnable=True)


MAPS = {
    "unbounded": lambda: CellBijection(Voronoi.create(7, 3)),
    "shared-box": lambda: CellBijection(Voronoi.create([4, 3], 2, box=Box.cube(2.0, 2))),
    "learned-box": lambda: CellBijection(Voronoi.create(6, 2, box=Box.cube(2.0, 2, learnable=True))),
    "boxes": lambda: CellBijection(laguerre([3, 8, 1], 2, box=boxes())),
    "ragged": lambda: CellBijection(Voronoi.create([2, 6, 1, 4], 3)),
    "laguerre": lambda: CellBijection(laguerre(9, 2), "root"),
    "one-cell": lambda: CellBijection(Voronoi.create(1, 4)),
    "frozen": lambda: CellBijection(Voronoi.create(5, 2, learnable=False), learn_scale=False),
    "root": lambda: CellBijection(Voronoi.create(6, 2, box=Box.cube(2.0, 2)), 2.0),
    "power": lambda: CellBijection(Voronoi.create(6, 2, box=Box.cube(2.0, 2)), 8.0, steady=0.1),
    "many-cells": lambda: CellBijection(Voronoi.create(300, 1), 1.5),
    "rows": lambda: CellBijection(
        laguerre(5, cell_layout.ROWS_FROM, box=Box.cube(2.0, cell_layout.ROWS_FROM, learnable=True))
    ),
}


def problem(bijection: CellBijection, out: bool, rows: int = 40) -> tuple[Tensor, Tensor]:
    t = bijection.tessellation
    cell = torch.stack([torch.randint(count, (rows,)) for count in t.counts], -1)
    cell = cell[:, 0] if t.shared else cell
    x = 0.5 * torch.randn(*cell.shape, t.dim)
    torch.nn.init.normal_(bijection.log_scale, std=0.3)
    return (bijection.forward_and_ladj(x, cell)[0].detach() if out else x), cell


def derivatives(bijection: CellBijection, x: Tensor, cell: Tensor, out: bool) -> list[Tensor]:
    """Image, ladj, gradients of both, and gradients of these gradients, with respect to points and parameters."""
    generator = torch.Generator().manual_seed(1)
    x = x.clone().requires_grad_()
    image, ladj = (bijection.inverse_and_ladj if out else bijection.forward_and_ladj)(x, cell)
    found, wanted = [image, ladj], [x, *bijection.parameters()]
    for _ in range(2):
        loss = sum((value * torch.randn(value.shape, generator=generator)).sum() for value in found[-len(wanted) :])
        found += torch.autograd.grad(loss, wanted, create_graph=True, materialize_grads=True)
    return found


@pytest.mark.parametrize("out", [False, True], ids=["into", "out"])
@pytest.mark.parametrize("name", MAPS)
def test_values_and_derivatives_are_those_of_automatic_differentiation(name, out, monkeypatch):
    bijection = MAPS[name]()
    x, cell = problem(bijection, out)
    ours = derivatives(bijection, x, cell, out)
    once = first_order(bijection, x, cell, out)
    monkeypatch.setattr(checks, "followed", lambda: True)
    for a, b in zip(ours, derivatives(bijection, x, cell, out), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)
    for a, b in zip(once, first_order(bijection, x, cell, out), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)


def first_order(bijection: CellBijection, x: Tensor, cell: Tensor, out: bool) -> list[Tensor]:
    """Gradients without a graph of their own, asked for twice."""
    x = x.clone().requires_grad_()
    image, ladj = (bijection.inverse_and_ladj if out else bijection.forward_and_ladj)(x, cell)
    loss, wanted = image.square().sum() + ladj.sum(), [x, *bijection.parameters()]
    first = torch.autograd.grad(loss, wanted, retain_graph=True, materialize_grads=True)
    again = torch.autograd.grad(loss, wanted, materialize_grads=True)
    for a, b in zip(first, again, strict=True):
        assert torch.equal(a, b)
    return list(first)


def test_it_is_used_where_nobody_looks_into_it(monkeypatch):
    calls = []
    monkeypatch.setattr(cell_map, "forward", lambda *args, f=cell_map.forward: calls.append(1) or f(*args))
    x, cell = torch.randn(4, 2), torch.zeros(4, dtype=torch.int64)
    for squashing, expected in (("softsign", 1), (3.0, 1), ("arctan", 0), ("exponential", 0)):
        calls.clear()
        CellBijection(Voronoi.create(3, 2), squashing).forward_and_ladj(x, cell)
        assert len(calls) == expected, squashing
    calls.clear()
    bijection = CellBijection(Voronoi.create(3, 2), 3.0, learn_power=True)
    bijection.forward_and_ladj(x, cell)
    bijection = CellBijection(Voronoi.create(3, 2))
    torch.func.vmap(bijection.forward_and_ladj)(x, cell)
    with torch.autograd.forward_ad.dual_level():
        bijection.forward_and_ladj(torch.autograd.forward_ad.make_dual(x, x), cell)
    assert not calls


def test_forward_mode_and_hessians():
    bijection, cell = CellBijection(Voronoi.create(5, 2, box=Box.cube(2.0, 2))), torch.tensor(3)
    x, v = torch.randn(2), torch.randn(2)
    _, slope = torch.func.jvp(lambda p: bijection.forward_and_ladj(p, cell)[1], (x,), (v,))
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(bijection.forward_and_ladj(leaf, cell)[1], leaf, create_graph=True)
    torch.testing.assert_close(slope, gradient @ v)
    hessian = torch.func.hessian(lambda p: bijection.forward_and_ladj(p, cell)[1])(x)
    rows = [torch.autograd.grad(gradient[i], leaf, retain_graph=True)[0] for i in range(2)]
    torch.testing.assert_close(hessian, torch.stack(rows))
