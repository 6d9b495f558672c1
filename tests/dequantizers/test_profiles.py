"""Starting positions from co-occurrence."""

import pytest
import torch

from tessella.dequantizers import SimplexConfig, VoronoiConfig
from tessella.dequantizers.profiles import profile_positions, turned


def test_an_order_that_nobody_told_shows_in_the_positions():
    """Noisy copies of one ordered variable, categories renamed: neighbours in value are neighbours in space."""
    value = torch.randint(30, (20_000,))
    noisy = (value + torch.randint(-2, 3, (20_000,))).clamp(0, 29)
    names = torch.randperm(30)
    positions = profile_positions(torch.stack([names[value], noisy], -1), (30, 30), 2)[0]
    in_order = positions[names]
    step = (in_order[1:] - in_order[:-1]).norm(dim=-1).mean()
    apart = torch.cdist(in_order, in_order).mean()
    assert step < 0.3 * apart


def test_positions_are_finite_and_distinct_for_ragged_and_degenerate_tables():
    codes = torch.stack([torch.zeros(50).long(), torch.randint(2, (50,)), torch.randint(7, (50,))], -1)
    counts = (1, 2, 9)  # two categories of the last variable never occur
    cells = VoronoiConfig(dim=3, box=2.0).build(counts)
    cells.arrange(codes)
    tessellation = cells.map.tessellation
    assert tessellation.anchors.isfinite().all()
    tessellation.check()
    x, _ = cells.forward(torch.randn(50, 3, 3), codes)
    assert torch.equal(cells.quantize(x), codes)


def test_what_is_fixed_or_asked_to_stay_stays():
    codes = torch.tensor([[1, 2]])
    for cells in (SimplexConfig().build((3, 4)), VoronoiConfig(placement="random").build((3, 4))):
        before = cells.centre(codes)
        cells.arrange(torch.zeros(5, 2, dtype=torch.int64))
        assert torch.equal(cells.centre(codes), before)


@pytest.mark.parametrize("dim", [2, 4, 6])
def test_turned_axes_are_orthonormal_and_every_half_has_half_of_each(dim):
    """Couplings keep the first or the second half of the coordinates, or the odd or the even ones."""
    axes = turned(torch.eye(dim))
    torch.testing.assert_close(axes @ axes.mT, torch.eye(dim))
    for half in (axes[:, : dim // 2], axes[:, ::2]):
        torch.testing.assert_close(half.square().sum(1), torch.full((dim,), 0.5))
