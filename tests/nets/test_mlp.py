"""Networks of flat vectors: zero at the start, any batch shape, the context has its say."""

import pytest
import torch

from tessella.nets import MLP, ResidualMLP


@pytest.fixture(params=[MLP, ResidualMLP], ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def perturbed(net):
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return net


def test_it_starts_by_returning_zero(kind):
    net = kind(3, 5, 8, layers=3, context=2)
    out = net(torch.randn(4, 6, 3), torch.randn(4, 6, 2))
    assert torch.equal(out, torch.zeros(4, 6, 5))


def test_input_and_context_both_matter_and_every_weight_learns(kind):
    net = perturbed(kind(3, 5, 8, layers=3, context=2))
    x, context = torch.randn(7, 3, requires_grad=True), torch.randn(7, 2, requires_grad=True)
    net(x, context).square().sum().backward()
    for tensor in (x, context, *net.parameters()):
        assert tensor.grad.abs().sum() > 0


def test_nothing_but_a_context_is_enough(kind):
    assert perturbed(kind(0, 5, 8, context=2))(torch.empty(7, 0), torch.randn(7, 2)).shape == (7, 5)


def test_each_residual_block_adds_to_what_it_was_given():
    net = perturbed(ResidualMLP(3, 5, 8))
    x = torch.randn(7, 3)
    h = net.embed(x)
    for block in net.blocks:
        first, second = block[1], block[3]
        h = h + second(torch.nn.functional.silu(first(torch.nn.functional.silu(h))))
    torch.testing.assert_close(net(x), net.head[1](torch.nn.functional.silu(h)))


def test_dropout_is_of_what_blocks_add_and_of_training_alone():
    net = perturbed(ResidualMLP(3, 5, 8, dropout=0.5))
    x = torch.randn(7, 3)
    assert not torch.equal(net(x), net(x))
    same = ResidualMLP(3, 5, 8)
    same.load_state_dict(net.state_dict())
    torch.testing.assert_close(net.eval()(x), same(x))
