"""Continuous flows on a GPU: what is recorded and replayed in training is what is computed."""

import pytest
import torch

from tessella.bijections import ContinuousFlow
from tessella.nets import Transformer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.filterwarnings("error:continuous flow")
@pytest.mark.parametrize(("gradients", "tolerance"), [("steps", 1e-4), ("adjoint", 1e-3)])  # that solves anew, to 1e-5
@pytest.mark.parametrize("trace", ["exact", "hutchinson"])
def test_recorded_steps_have_the_values_and_gradients_of_plain_ones(trace, gradients, tolerance, monkeypatch):
    torch.manual_seed(0)
    net = Transformer(3, 3, 16, 1, positions=None, context=2)
    flow = ContinuousFlow(net, trace, gradients=gradients).cuda().train()
    for parameter in flow.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    found = []
    for recorded in (True, True, False):  # the second time it is replayed
        if not recorded:
            monkeypatch.setattr(ContinuousFlow, "_program", lambda self, make, *_: make(False))
        torch.manual_seed(1)
        x = torch.randn(8, 4, 3, device="cuda", requires_grad=True)
        y, ladj = flow.forward_and_ladj(x)
        slopes = torch.autograd.grad(y.square().sum() + ladj.sum(), [x, *flow.parameters()], allow_unused=True)
        found.append([y, ladj, *(slope for slope in slopes if slope is not None)])
    for first, second, plain in zip(*found, strict=True):
        torch.testing.assert_close(first, second)
        torch.testing.assert_close(first, plain, rtol=tolerance, atol=tolerance / 10)
