"""Couplings that know the cells: what they carry to noise is the mixture that they say, and they know nothing else."""

import pytest
import torch

from tessella.bijections import CellBumps, CellCoupling
from tessella.dequantizers import VoronoiConfig
from tessella.nets import Transformer

COUNTS = (3, 1, 4)


def coupling(components: int = 3) -> CellCoupling:
    """Variables 0 and 2 move given the cell of variable 1."""
    net = Transformer(2 + 4, 8, 8, 1, positions=3)
    made = CellCoupling(CellBumps(VoronoiConfig(dim=2).build(COUNTS)), [0, 2], [1], net, 4, 8, 3, components)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def log_logistic(x: torch.Tensor) -> torch.Tensor:
    return -x - 2 * torch.nn.functional.softplus(-x)


@pytest.mark.parametrize("components", [1, 3])
@torch.no_grad()
def test_the_density_is_the_mixture_that_the_formula_says(components):
    """sum_r pi_r prod_j sum_k w_rjk prod_d l(...), written out, against base and log-determinant."""
    map_, x = coupling(components), torch.randn(20, 3, 2)
    y, ladj = map_.forward_and_ladj(x)
    log_density = log_logistic(y[:, [0, 2]]).sum((-1, -2)) + ladj
    log_pi, log_weight = map_._conditional(x)  # (B, R), (B, R, K, 2)
    bumps, said = map_.bumps, log_pi.log_softmax(-1)
    for place, j in enumerate((0, 2)):
        each = torch.zeros(20, components)
        for k in range(COUNTS[j]):
            scale, middle = bumps.log_scale[j, k].exp(), bumps.middle()[j, k]
            bump = (log_logistic((x[:, j] - middle) / scale - bumps.offset[j, k]) - scale.log()).sum(-1)
            each += (log_weight[:, :, k, place] + bump[:, None]).exp()
        said = said + each.log()
    torch.testing.assert_close(said.logsumexp(-1), log_density)


@torch.no_grad()
def test_bumps_start_where_points_lie():
    """Means, spreads and frequencies of the cells' points; a cell without points has the middle of its own."""
    cells = VoronoiConfig(dim=2).build((3, 2))
    bumps = CellBumps(cells)
    codes = torch.tensor([[0, 0], [1, 0], [1, 1], [0, 1]]).repeat(500, 1)  # nobody is in cell 2 of variable 0
    noise = 0.05 * torch.randn(2000, 2, 2)
    x = cells.centre(codes) + noise
    assert torch.equal(cells.quantize(x), codes)
    bumps.start(x)
    centre, log_scale = bumps.places(torch.tensor([0, 1]))  # (D, K, N)
    own = x[codes[:, 0] == 1, 0]
    torch.testing.assert_close(centre[:, 1, 0], own.mean(0))
    torch.testing.assert_close(log_scale[:, 1, 0].exp() * torch.pi / 3**0.5, own.std(0, correction=0))
    torch.testing.assert_close(centre[:, 2, 0], bumps.middle()[0, 2])
    assert bumps.bias[0].exp().tolist() == pytest.approx([1000.5 / 2001.5, 1000.5 / 2001.5, 0.5 / 2001.5])


@torch.no_grad()
def test_a_variable_that_moves_is_seen_by_no_network():
    """The weights of the mixture depend on the other variables alone."""
    map_, x = coupling(), torch.randn(5, 3, 2)
    other = x.clone()
    other[:, [0, 2]] = torch.randn(5, 2, 2)
    before, after = map_._conditional(x), map_._conditional(other)
    for one, two in zip(before, after, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=0)
    assert torch.equal(map_.forward_and_ladj(x)[0][:, 1], x[:, 1])


def test_at_least_one_component():
    with pytest.raises(ValueError, match="components: got 0; expected at least 1"):
        coupling(0)
