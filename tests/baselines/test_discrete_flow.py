"""The discrete flow: a permutation of all rows, with the gradient of its relaxation."""

from itertools import product

import pytest
import torch
from torch import Tensor

from tessella.baselines import DiscreteFlow
from tessella.baselines.discrete_flow import _moving_half


def flow(counts: tuple[int, ...], layers: int) -> DiscreteFlow:
    model = DiscreteFlow(counts, layers, width=8)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("counts", [(3, 1, 4, 2), (5, 6), (7,), (2, 2, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("layers", [1, 6])
def test_a_permutation_of_all_rows(counts, layers):
    rows = torch.tensor(list(product(*map(range, counts))))
    model = flow(counts, layers)
    image = model.transform(rows)
    assert torch.equal(model.invert(image), rows)
    assert torch.equal(model.transform(model.invert(rows)), rows)
    assert torch.equal(image.unique(dim=0), rows)  # sorted, so all of them, each once
    assert layers == 1 or not torch.equal(image, rows)


def test_a_new_flow_changes_nothing():
    rows = torch.tensor(list(product(range(3), range(1), range(4))))
    assert torch.equal(DiscreteFlow((3, 1, 4), 4, 8).transform(rows), rows)


def relaxed(layer, one_hot: Tensor, counts: tuple[int, ...]) -> Tensor:
    """y[k] = sum_(a, b) A[a] B[b] c[a^-1 (k - b)], term by term, with A and B straight through."""
    a, b, soft_a, soft_b = layer._choose(one_hot)
    chosen_a = layer.one_hot(a.squeeze(-1)) + soft_a - soft_a.detach()
    chosen_b = layer.one_hot(b.squeeze(-1)) + soft_b - soft_b.detach()
    columns = []
    for j, count in enumerate(counts):
        y = [torch.zeros(len(one_hot)) for _ in range(one_hot.shape[-1])]
        for k, shift, unit in product(range(count), range(count), layer.unit[j].nonzero().flatten().tolist()):
            source = one_hot[:, j, pow(unit, -1, count) * (k - shift) % count]
            y[k] = y[k] + chosen_a[:, j, unit] * chosen_b[:, j, shift] * source
        columns.append(torch.stack(y, -1))
    return torch.where(layer.moves, torch.stack(columns, 1), one_hot)


def test_the_gradient_is_that_of_the_relaxed_map():
    counts = (3, 1, 4, 5, 6)
    codes = torch.stack([torch.randint(count, (20,)) for count in counts], -1)
    layer = flow(counts, 1).layers[0]
    one_hot = layer.one_hot(codes).requires_grad_()
    wanted = [one_hot, *layer.parameters()]
    y, fast = layer(codes, one_hot)
    slow = relaxed(layer, one_hot, counts)
    torch.testing.assert_close(fast, slow)
    assert torch.equal(fast.argmax(-1), y)
    cotangent = torch.randn_like(fast) * (torch.arange(6) < torch.tensor(counts)[:, None])
    for mine, truth in zip(
        torch.autograd.grad(fast, wanted, cotangent), torch.autograd.grad(slow, wanted, cotangent), strict=True
    ):
        torch.testing.assert_close(mine, truth)


@pytest.mark.parametrize("variables", [2, 5, 42])
def test_any_two_variables_are_apart_in_some_layer(variables):
    halves = torch.stack([_moving_half(variables, layer) for layer in range(12)])
    assert torch.equal(halves[0::2], ~halves[1::2])
    apart = (halves[:, :, None] != halves[:, None, :]).any(0)
    assert torch.equal(apart, ~torch.eye(variables, dtype=torch.bool))
