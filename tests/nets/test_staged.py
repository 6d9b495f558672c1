"""Laws of the transformer over variables that become known in stages."""

import pytest
import torch

from tessella.nets import StagedTransformer

STAGES = {
    "one": [0, 0, 0],
    "in-turn": [0, 1, 2, 0, 1],
    "each-its-own": [0, 1, 2],
    "not-in-order": [2, 0, 1, 1, 2],
}


@pytest.fixture(params=STAGES, ids=str)
def net(request):
    return StagedTransformer(torch.tensor(STAGES[request.param]), width=8, layers=2).eval()


def test_answers_depend_on_earlier_stages_only(net):
    values = torch.randn(4, len(net.stage), 8, requires_grad=True)
    for variable, stage in enumerate(net.stage.tolist()):
        (slope,) = torch.autograd.grad(net(values)[:, variable].square().sum(), values)
        depends = (slope != 0).any(-1).all(0)
        assert torch.equal(depends, net.stage < stage)


def test_a_walk_gives_the_same_answers_stage_by_stage(net):
    values = torch.randn(4, len(net.stage), 8)
    walk = net.walk(4)
    for stage in range(int(net.stage.max()) + 1):
        members = net.stage == stage
        torch.testing.assert_close(walk.answer(stage), net(values)[:, members])
        walk.tell(stage, values[:, members])
