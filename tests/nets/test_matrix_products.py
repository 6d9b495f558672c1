"""Both libraries multiply the same, in values and gradients of gradients; the faster one is asked where it is that."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from tessella.nets import linear as module
from tessella.nets.linear import Linear, linear

needs_onednn = pytest.mark.skipif(
    not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")),
    reason="PyTorch comes without oneDNN here",
)


@pytest.fixture(autouse=True)
def single_precision():
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def onednn(monkeypatch):
    """oneDNN multiplies everything, however little; what was multiplied is kept."""
    asked = []
    multiplied = module._multiplied
    monkeypatch.setattr(module, "MANY", 1)
    monkeypatch.setattr(module, "ROWS", 1)
    monkeypatch.setattr(module, "_multiplied", lambda *args: (asked.append(args), multiplied(*args))[1])
    with module.onednn(True):
        yield asked


@needs_onednn
@given(
    batch=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    inputs=st.integers(1, 40),
    outputs=st.integers(1, 40),
    biased=st.booleans(),
)
def test_values_and_gradients_of_gradients_are_those_of_the_other_library(batch, inputs, outputs, biased):
    x, weight = torch.randn(*batch, inputs), torch.randn(outputs, inputs)
    bias = torch.randn(outputs) if biased else None

    def found(multiply):
        leaves = [part.clone().requires_grad_() for part in (x, weight, bias) if part is not None]
        out = multiply(*leaves)
        first = torch.autograd.grad(out.square().sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum(grad.square().sum() for grad in first), leaves)
        return out, *first, *second

    def by_onednn(x, weight, bias=None):
        return module._Linear.apply(x, weight, bias)

    for ours, theirs in zip(found(by_onednn), found(functional.linear), strict=True):
        size = float(theirs.detach().abs().max())
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * (1 + size))


@needs_onednn
def test_matrices_that_lie_on_their_side_are_multiplied_as_they_are(onednn):
    x, weight = torch.randn(64, 5), torch.randn(64, 7)
    torch.testing.assert_close(linear(x.T, weight.T), x.T @ weight, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(linear(x[::2], weight[:, :5]), x[::2] @ weight[:, :5].T, rtol=1e-4, atol=1e-4)
    assert len(onednn) == 2


@needs_onednn
def test_slices_are_laid_out_before_onednn_sees_them(onednn, monkeypatch):
    """It multiplies others by a reference implementation, a thousand times slower: nobody would notice by values."""
    multiplied, seen = torch.ops.mkldnn._linear_pointwise, []
    monkeypatch.setattr(
        torch.ops.mkldnn, "_linear_pointwise", lambda *args: (seen.extend(args[:2]), multiplied(*args))[1]
    )
    states = torch.randn(64, 3, 8, requires_grad=True)
    layer = Linear(8, 5)
    (layer(states[:, 1]).square().sum() + layer(states[..., ::2].repeat(1, 1, 2)[:, 0]).sum()).backward()
    assert len(onednn) == 6
    assert len(seen) == 12
    assert all(matrix.is_contiguous() or matrix.mT.is_contiguous() for matrix in seen)


@needs_onednn
def test_few_products_and_double_precision_stay_where_they_were(onednn, monkeypatch):
    layer, x = Linear(8, 8), torch.randn(64, 8)
    layer(x)
    assert len(onednn) == 1
    for name, limit in {"MANY": 64 * 8 * 8 + 1, "ROWS": 65}.items():
        with monkeypatch.context() as changed:
            changed.setattr(module, name, limit)
            layer(x)
    with module.onednn(False):
        layer(x)
    layer.double()(x.double())
    assert len(onednn) == 1


@needs_onednn
def test_whoever_follows_operations_sees_those_of_pytorch(onednn):
    layer, x = Linear(3, 4), torch.randn(6, 3)
    by_rows = torch.func.vmap(layer)(x)
    jacobian = torch.func.jacrev(layer)(x[0])
    _, tangent = torch.func.jvp(layer, (x,), (torch.ones_like(x),))
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    assert not onednn
    torch.testing.assert_close(by_rows, layer(x))
    torch.testing.assert_close(jacobian, layer.weight)
    torch.testing.assert_close(tangent, layer.weight.sum(1).expand(6, 4))
