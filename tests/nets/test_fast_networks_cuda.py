"""Networks in bfloat16 with fused kernels, on a GPU: the flows that use them stay what they are."""

from dataclasses import replace

import pytest
import torch

from tessella.baselines import BlockAutoregressiveMixture
from tessella.data import TableShape
from tessella.densities import CouplingConfig, Gaussian, token_flow
from tessella.dequantizers import ConditionalNoise, VoronoiConfig
from tessella.models import FlowConfig

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(autouse=True)
def single_precision():
    torch.set_default_dtype(torch.float32)


SMALL = FlowConfig(
    cells=VoronoiConfig(dim=2),
    noise=ConditionalNoise(blocks=1, width=32, layers=1),
    density=CouplingConfig(blocks=2, width=32, layers=1),
)
MODELS = {
    "coupling": lambda fast: replace(SMALL, fast=fast).build(TableShape((3,) * 5)),
    "blocks": lambda fast: BlockAutoregressiveMixture((3,) * 5, 3, 4, 32, 1, fast=fast),
}


def trained(name: str, fast: bool, steps: int = 30) -> list[float]:
    """Losses on rows whose five columns are all the same."""
    torch.manual_seed(0)
    model = MODELS[name](fast).cuda().train()
    codes = torch.randint(3, (256, 1), device="cuda").expand(-1, 5).contiguous()
    model.initialize(codes)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.loss(codes)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.parametrize("name", MODELS)
def test_fast_networks_learn_as_plain_ones_do(name):
    fast, plain = trained(name, True), trained(name, False)
    assert fast[-1] < fast[0] - 1
    assert abs(fast[-1] - plain[-1]) < 0.3 * (plain[0] - plain[-1])


def test_a_flow_with_fast_networks_is_still_inverted_exactly():
    torch.manual_seed(0)
    flow = token_flow(Gaussian((5, 4)), blocks=4, width=32, layers=2, fast=True).cuda().eval()
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        x = torch.randn(100, 5, 4, device="cuda")
        y, ladj = flow.bijection.forward_and_ladj(x)
        back, undone = flow.bijection.inverse_and_ladj(y)
    torch.testing.assert_close(back, x, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(undone, -ladj, rtol=1e-3, atol=1e-3)
