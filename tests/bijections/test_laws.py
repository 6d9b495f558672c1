"""Laws of every bijection, over a table of constructors."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from safetensors.torch import load_model, save_model
from torch import Tensor
from torch.autograd.functional import jacobian

from tessella import ActNorm, Bijection, Box, CellBijection, Chain, Invert, Laguerre, Voronoi
from tessella.bijections import (
    SQUASHINGS,
    CellAffine,
    CellBumps,
    CellCoupling,
    ContextAffine,
    Coupling,
    Flattened,
    LinearLU,
    LogisticMixture,
    Profile,
    RationalQuadratic,
    VariableCoupling,
)
from tessella.dequantizers import CellsConfig
from tessella.geometry import Tessellation
from tessella.nets import MLP, ResidualMLP, Transformer

Case = tuple[Bijection, Tensor, Any]  # the map, points of its domain, its context
BATCH = 6


def perturbed(module: Any) -> Any:
    """Every parameter away from its neutral start."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def in_cells(
    tessellation: Tessellation, squashing: Profile = "softsign", learn_power: bool = False, size: float = 1.0
) -> Case:
    bijection = perturbed(CellBijection(tessellation, squashing, learn_power=learn_power))
    columns = [torch.randint(count, (BATCH,)) for count in tessellation.counts]
    cell = columns[0] if tessellation.shared else torch.stack(columns, -1)
    return bijection, size * torch.randn(*cell.shape, tessellation.dim), cell


def inverted(case: Case) -> Case:
    bijection, x, context = case
    return Invert(bijection), bijection.forward_and_ladj(x, context)[0].detach(), context


def knowing_cells(cells: str = "voronoi", components: int = 1) -> Case:
    """Variables 2 and 0 of three move given the cell of the other, and a fourth, which lies in none."""
    bumps = CellBumps(CellsConfig.named(cells, dim=3).build((3, 1, 4)))
    dim = bumps.regions.dim
    net = Transformer(dim + 5, 8, 8, 1, positions=4)
    return perturbed(CellCoupling(bumps, [2, 0], [1], net, 5, 8, 4, components)), torch.randn(BATCH, 4, dim), None


CASES: dict[str, Callable[[], Case]] = {
    "knowing-cells": knowing_cells,
    "knowing-fixed-cells-in-components": lambda: knowing_cells("simplex", 2),
    **{
        f"voronoi-boxed-D{d}": lambda d=d: in_cells(Voronoi.create(5, d, box=Box.cube(2.0, d)))
        for d in (1, 2, 3, 8, 63)
    },
    **{f"voronoi-D{d}": lambda d=d: in_cells(Voronoi.create([5, 3], d)) for d in (1, 2, 3, 8, 63)},
    **{f"laguerre-D{d}": lambda d=d: in_cells(Laguerre.create(7, d)) for d in (1, 2, 3, 8)},
    **{name: lambda name=name: in_cells(Voronoi.create(6, 3), name) for name in SQUASHINGS},
    # With a large power points two cells away from the anchor lie so close to the wall that no digit tells them apart.
    **{f"power-{p}": lambda p=p: in_cells(Voronoi.create(6, 3), float(p), size=0.3) for p in (1, 2, 4, 8, 16, 32)},
    "power-learned": lambda: in_cells(Voronoi.create(6, 3), 8.0, learn_power=True, size=0.3),
    "ragged": lambda: in_cells(Voronoi.create([1, 4, 2], 2)),
    "ragged-laguerre-boxed": lambda: in_cells(Laguerre.create([1, 4, 2], 2, box=Box.cube(3.0, 2, learnable=True))),
    "one-cell": lambda: in_cells(Voronoi.create(1, 3)),
    "one-cell-boxed": lambda: in_cells(Voronoi.create(1, 3, box=Box.cube(1.0, 3))),
    "learned-box": lambda: in_cells(Voronoi.create(4, 2, box=Box.cube(2.0, 2, learnable=True))),
    "inverse-of-cell": lambda: inverted(in_cells(Voronoi.create([5, 3], 2))),
    "cell-affine": lambda: (perturbed(CellAffine(4, 3)), torch.randn(BATCH, 3), torch.arange(BATCH) % 4),
    "actnorm-vector": lambda: (perturbed(ActNorm((4,))), torch.randn(BATCH, 4), None),
    "actnorm-tokens": lambda: (perturbed(ActNorm((3, 2))), torch.randn(BATCH, 3, 2), None),
    "coupling": lambda: (perturbed(Coupling(5, [0, 3], MLP(2, 6, 8))), torch.randn(BATCH, 5), None),
    "coupling-in-context": lambda: (
        perturbed(Coupling(3, [0, 1], MLP(2, 2, 8, context=4))),
        torch.randn(BATCH, 3),
        torch.randn(BATCH, 4),
    ),
    "coupling-of-tokens": lambda: (
        perturbed(Coupling(4, [1, 3], Transformer(2, 4, 8, positions=3), event_dim=2)),
        torch.randn(BATCH, 3, 4),
        None,
    ),
    "coupling-of-variables": lambda: (
        perturbed(VariableCoupling([1], range(2), Transformer(2, 4, 8, positions=3), 3)),
        torch.randn(BATCH, 3, 2),
        None,
    ),
    "coupling-of-a-coordinate-of-variables": lambda: (
        perturbed(VariableCoupling([2, 0], range(1, 2), Transformer(3, 2, 8, positions=3), 3)),
        torch.randn(BATCH, 3, 3),
        None,
    ),
    "coupling-of-variables-in-context": lambda: (
        perturbed(VariableCoupling([2], range(2), Transformer(2, 4, 8, positions=3, context=4), 3)),
        torch.randn(BATCH, 3, 2),
        torch.randn(BATCH, 3, 4),
    ),
    "coupling-by-mixtures": lambda: (
        perturbed(Coupling(4, [1, 3], Transformer(2, 28, 8, positions=3), 2, LogisticMixture(4))),
        torch.randn(BATCH, 3, 4),
        None,
    ),
    "coupling-of-variables-by-mixtures": lambda: (
        perturbed(VariableCoupling([1], range(2), Transformer(2, 10, 8, positions=3), 3, LogisticMixture(1))),
        torch.randn(BATCH, 3, 2),
        None,
    ),
    "coupling-by-splines": lambda: (
        perturbed(Coupling(5, [0, 3], ResidualMLP(2, 33, 8), elementwise=RationalQuadratic(4))),
        2 * torch.randn(BATCH, 5),
        None,
    ),
    "coupling-by-splines-in-context": lambda: (
        perturbed(Coupling(3, [0, 1], ResidualMLP(2, 5, 8, context=4), elementwise=RationalQuadratic(2, bound=2.0))),
        2 * torch.randn(BATCH, 3),
        torch.randn(BATCH, 4),
    ),
    "coupling-of-tokens-by-splines": lambda: (
        perturbed(Coupling(4, [1, 3], Transformer(2, 46, 8, positions=3), 2, RationalQuadratic(8))),
        2 * torch.randn(BATCH, 3, 4),
        None,
    ),
    "coupling-of-variables-by-splines": lambda: (
        perturbed(VariableCoupling([1], range(2), Transformer(2, 16, 8, positions=3), 3, RationalQuadratic(3))),
        2 * torch.randn(BATCH, 3, 2),
        None,
    ),
    "linear": lambda: (perturbed(LinearLU(5)), torch.randn(BATCH, 5), None),
    "linear-permuted": lambda: (perturbed(LinearLU(4, [2, 0, 3, 1])), torch.randn(BATCH, 4), None),
    "linear-of-each-variable": lambda: (
        perturbed(LinearLU(3, [2, 0, 1], variables=2)),
        torch.randn(BATCH, 2, 3),
        None,
    ),
    "linear-of-tokens": lambda: (perturbed(LinearLU(3)), torch.randn(BATCH, 2, 3), None),
    "context-affine": lambda: (
        perturbed(ContextAffine(torch.nn.Linear(4, 12), event_dim=2)),
        torch.randn(BATCH, 3, 2),
        torch.randn(BATCH, 4),
    ),
    "flattened": lambda: (
        perturbed(Flattened(Coupling(6, [0, 3, 5], MLP(3, 6, 8)))),
        torch.randn(BATCH, 3, 2),
        None,
    ),
    "chain-empty": lambda: (Chain(), torch.randn(BATCH, 3), None),
    "chain": lambda: (
        perturbed(Chain(ActNorm((3,)), Invert(ActNorm((3,))), ActNorm((3,)))),
        torch.randn(BATCH, 3),
        None,
    ),
    "chain-of-event-dims": lambda: (lambda b, x, c: (Chain(b, _NoContext(ActNorm((2, 3)))), x, c))(
        *in_cells(Voronoi.create([4, 5], 3))
    ),
}


class _NoContext(Bijection):
    """A part that has no use for the chain's context."""

    def __init__(self, part: Bijection):
        super().__init__()
        self.part = perturbed(part)
        self.event_dim = part.event_dim

    def forward_and_ladj(self, x: Tensor, context: Any = None) -> tuple[Tensor, Tensor]:
        return self.part.forward_and_ladj(x)

    def inverse_and_ladj(self, y: Tensor, context: Any = None) -> tuple[Tensor, Tensor]:
        return self.part.inverse_and_ladj(y)


@pytest.fixture(params=CASES, ids=str)
def case(request) -> Case:
    return CASES[request.param]()


def row(context: Any, b: int) -> Any:
    return None if context is None else context[b : b + 1]


def numerical_ladj(call: Callable[..., tuple[Tensor, Tensor]], x: Tensor, context: Any) -> Tensor:
    """log|det| of each row's full Jacobian, by autograd."""
    size = x[0].numel()
    rows = [jacobian(lambda p, b=b: call(p[None], row(context, b))[0][0], x[b]) for b in range(len(x))]
    return torch.stack([torch.linalg.slogdet(j.reshape(size, size))[1] for j in rows])


def test_round_trip_and_opposite_ladj(case):
    bijection, x, context = case
    y, ladj = bijection.forward_and_ladj(x, context)
    back, back_ladj = bijection.inverse_and_ladj(y, context)
    torch.testing.assert_close(back, x, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(back_ladj, -ladj, rtol=1e-8, atol=1e-9)
    again, _ = bijection.forward_and_ladj(back, context)
    torch.testing.assert_close(again, y, rtol=1e-12, atol=1e-12)


def test_ladj_has_the_batch_shape_and_is_the_log_determinant(case):
    bijection, x, context = case
    y, ladj = bijection.forward_and_ladj(x, context)
    assert ladj.shape == x.shape[: x.dim() - bijection.event_dim]
    torch.testing.assert_close(ladj.reshape(BATCH, -1).sum(-1), numerical_ladj(bijection.forward_and_ladj, x, context))
    _, ladj = bijection.inverse_and_ladj(y, context)
    numerical = numerical_ladj(bijection.inverse_and_ladj, y.detach(), context)
    torch.testing.assert_close(ladj.reshape(BATCH, -1).sum(-1), numerical, rtol=1e-6, atol=1e-6)


def test_a_gradient_reaches_every_parameter(case):
    bijection, x, context = case
    if not list(bijection.parameters()):
        pytest.skip("a map without parameters")
    alone = isinstance(bijection, CellBijection) and max(bijection.tessellation.counts) == 1
    y, ladj = bijection.forward_and_ladj(x, context)
    ((y * torch.randn_like(y)).sum() + ladj.sum()).backward()
    for name, parameter in bijection.named_parameters():
        if name.startswith("bumps.regions.") and "anchors" not in name:
            continue  # of the cells that a coupling knows it looks at the middles alone
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0 or alone, name


def test_save_and_load(case, tmp_path):
    bijection, x, context = case
    expected = bijection.forward_and_ladj(x, context)
    save_model(bijection, tmp_path / "b.safetensors")
    perturbed(bijection)
    load_model(bijection, tmp_path / "b.safetensors")
    for a, b in zip(bijection.forward_and_ladj(x, context), expected, strict=True):
        assert torch.equal(a, b)


def test_copies_and_pickles(case):
    """What worker processes, deep copies and scikit-learn's clones need: no closure inside."""
    bijection, x, context = case
    again = pickle.loads(pickle.dumps(bijection))
    torch.testing.assert_close(again.forward_and_ladj(x, context), bijection.forward_and_ladj(x, context))


def test_compiles_to_one_graph_with_equal_values_and_gradients(case):
    bijection, x, context = case
    torch.compiler.reset()
    for call in (bijection.forward_and_ladj, bijection.inverse_and_ladj):
        x = bijection.forward_and_ladj(x, context)[0].detach() if call == bijection.inverse_and_ladj else x
        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        results = []
        for f in (call, compiled):
            point = x.clone().requires_grad_()
            y, ladj = f(point, context)
            results.append((y, ladj, *torch.autograd.grad(y.square().sum() + ladj.sum(), point)))
        for eager, traced in zip(*results, strict=True):
            torch.testing.assert_close(traced, eager)


def test_vmap_and_jacrev(case):
    bijection, x, context = case
    single = (lambda p: bijection.forward_and_ladj(p)) if context is None else bijection.forward_and_ladj
    inputs = (x,) if context is None else (x, context)
    y, ladj = torch.func.vmap(single)(*inputs)
    expected = bijection.forward_and_ladj(x, context)
    torch.testing.assert_close((y, ladj), expected)
    size = x[0].numel()
    j = torch.func.vmap(torch.func.jacrev(lambda *p: single(*p)[0]))(*inputs).reshape(BATCH, size, size)
    torch.testing.assert_close(torch.linalg.slogdet(j)[1], expected[1].reshape(BATCH, -1).sum(-1))


def test_as_transform_follows_the_protocol_of_torch(case):
    bijection, x, context = case
    transform = bijection.as_transform(context)
    y, ladj = bijection.forward_and_ladj(x, context)
    torch.testing.assert_close(transform(x), y)
    torch.testing.assert_close(transform.inv(y), x, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(transform.log_abs_det_jacobian(x, y), ladj)
    torch.testing.assert_close(transform.inv.log_abs_det_jacobian(y, x), -ladj)
    assert transform.domain.event_dim == bijection.event_dim
