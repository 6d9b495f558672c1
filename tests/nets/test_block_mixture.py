"""Laws of the network behind mixtures for groups of variables."""

import pytest
import torch

from tessella.nets import BlockMixture

SIZES = {"one-group": 1, "in-turn": 3, "each-its-own": 5}


@pytest.fixture(params=SIZES, ids=str)
def net(request):
    made = BlockMixture((2, 3, 4, 2, 3), SIZES[request.param], components=3, width=8, layers=2).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return made


def test_tables_depend_on_earlier_groups_only(net):
    values = torch.randn(4, 5, 8, requires_grad=True)
    log_table, log_weight = net(values)
    for variable, group in enumerate(net.group.tolist()):
        shown = log_table[:, variable].exp().square().sum() + log_weight[:, group].square().sum()
        (slope,) = torch.autograd.grad(shown, values, retain_graph=True)
        assert torch.equal((slope != 0).any(-1).all(0), net.group < group)


def test_tables_and_weights_are_distributions(net):
    log_table, log_weight = net(torch.randn(4, 5, 8))
    torch.testing.assert_close(log_table.exp().sum(-1), torch.ones(4, 5, 3))
    torch.testing.assert_close(log_weight.exp().sum(-1), torch.ones(4, net.groups))
    assert (log_table.exp()[:, 0, :, 2:] == 0).all()  # the first variable has two categories


def test_a_walk_gives_the_same_tables_group_by_group(net):
    values = torch.randn(4, 5, 8)
    log_table, log_weight = net(values)
    walk = net.walk(4)
    for group in range(net.groups):
        members, table, weight = walk.tables()
        assert torch.equal(members, (net.group == group).nonzero()[:, 0])
        torch.testing.assert_close(table, log_table[:, members])
        torch.testing.assert_close(weight, log_weight[:, group])
        walk.tell(values[:, members])
