"""One network for every order: what a state may know, and heads of ragged sizes."""

import pytest
import torch

from tessella.nets import AnyOrder, RaggedLogits
from tessella.nets.ragged import Mixed, draw, ragged_cells


def scattered(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return module.eval()


def test_a_state_knows_the_values_before_it_and_which_column_is_asked_for():
    net = scattered(AnyOrder(4, width=8, layers=2))
    order, values = torch.tensor([[2, 0, 3, 1], [1, 3, 0, 2]]), torch.randn(2, 4, 8)
    jacobian = torch.autograd.functional.jacobian(lambda v: net(v, order).sum(-1), values)  # (2, 4, 2, 4, 8)
    told = jacobian.abs().sum(-1) > 0
    assert torch.equal(told[0, :, 0], torch.ones(4, 4, dtype=torch.bool).tril(-1))
    assert not told[0, :, 1].any()
    asked = net(values[:1], torch.tensor([[2, 0, 1, 3]]))
    torch.testing.assert_close(asked[:, :2], net(values, order)[:1, :2])
    assert (asked[:, 2] - net(values, order)[:1, 2]).abs().max() > 1e-3


def test_columns_left_out_have_no_say():
    net = scattered(AnyOrder(4, width=8, layers=2))
    order, values = torch.tensor([[2, 0, 3, 1]]), torch.randn(1, 4, 8)
    torch.testing.assert_close(net(values[:, :2], order[:, :2]), net(values, order)[:, :2])


@pytest.mark.parametrize("evidence", [0, 5])
@pytest.mark.parametrize("kinds", [(1, 1, 1, 1), (2, 1, 3, 2), (40, 1, 2, 3), (1, 3, 40, 1)], ids=str)
@torch.no_grad()
def test_a_walk_is_the_one_pass(kinds, evidence):
    """Of columns with so many different values, of which rows share few, some, or all until then."""
    net, rows, order = scattered(AnyOrder(4, width=32, layers=2, evidence=evidence)), 40, [2, 0, 3, 1]
    keys = torch.stack([torch.randperm(rows) % kind for kind in kinds], 1)
    values = torch.stack([torch.randn(kind, 32 + evidence)[key] for kind, key in zip(kinds, keys.T, strict=True)], 1)
    states = net(values, torch.tensor(order).expand(rows, 4))
    for skipped in ({}, {0, 1}, {2}):
        walk = net.walk(rows)
        for t, column in enumerate(order):
            if t in skipped:
                walk.skip(column)
            else:
                torch.testing.assert_close(walk.spread(walk.ask(column)), states[:, t])
            walk.tell(column, values[:, t], keys[:, t])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_categories_are_drawn_by_their_probabilities(dtype):
    """What has no mass is never drawn, also at either end."""
    for times in (1, 20):  # few categories, or so many that they are dealt into hands
        probability = torch.tensor([0.0, 0.5, 0.0, 0.2, 0.3, 0.0], dtype=dtype).repeat(times) / times
        logits, row = torch.stack([torch.ones_like(probability), probability]).log(), torch.arange(80_000) % 2
        every, second = draw(logits[1].expand(40_000, -1)), draw(logits, row)[row == 1]
        for drawn in (every, second):
            shares = torch.bincount(drawn, minlength=len(probability)) / 40_000
            assert (shares[probability == 0] == 0).all()
            assert ((shares - probability).abs() <= 5 * (probability / 40_000).sqrt()).all()


def test_evidence_is_the_sum_over_what_was_told_before():
    """And nothing that the network sees."""
    net, order, values = scattered(AnyOrder(4, width=8, layers=2, evidence=3)), torch.randperm(4), torch.randn(2, 4, 11)
    learned, evidence = net(values, order.expand(2, 4)).split([8, 3], -1)
    for t in range(4):
        torch.testing.assert_close(evidence[:, t], values[:, :t, 8:].sum(1))
    other = torch.cat([values[..., :8], torch.randn(2, 4, 3)], -1)
    assert torch.equal(net(other, order.expand(2, 4))[..., :8], learned)


@pytest.mark.parametrize("components", [0, 4])
@pytest.mark.parametrize("counts", [(3, 70, 1, 2), (2, 2), (200,), (300, 5, 64, 63)], ids=str)
def test_ragged_logits_are_a_softmax_for_each_variable(counts, components):
    """Times a mixture, where there is one."""
    logits, states = RaggedLogits(counts), torch.randn(7, len(counts), 6)
    weight, bias, share = torch.randn(sum(counts), 6), torch.randn(sum(counts)), torch.rand(sum(counts), components)
    codes = torch.stack([torch.randint(count, (7,)) for count in counts], 1)
    posterior = torch.rand(7, len(counts), components)
    found = logits(states, weight, bias, codes, Mixed(posterior, share) if components else None)
    for j in range(len(counts)):
        own = logits.own(j)
        mass = (states[:, j] @ weight[own].T + bias[own]).exp()
        if components:
            mass = mass * (posterior[:, j] @ share[own].T)
        table = (mass / mass.sum(1, keepdim=True)).log()
        torch.testing.assert_close(found[:, j], table.gather(1, codes[:, j, None])[:, 0])


def test_a_column_of_names_is_not_what_the_others_pay_for():
    counts = (20_000, *[2] * 60, 300)
    assert ragged_cells(counts) == 20_000 + 60 * 2 + 300
    logits, weight = RaggedLogits(counts), torch.zeros(sum(counts), 4, requires_grad=True)
    states, codes = torch.randn(3, 62, 4), torch.zeros(3, 62, dtype=torch.int64)
    logits(states, weight, torch.zeros(sum(counts)), codes).sum().backward()
    assert weight.grad.isfinite().all()
    assert sum(buffer.numel() for buffer in logits.buffers()) < 3 * sum(counts)
