"""Where a flow that begins as a mixture starts: cells apart, narrow noise, a component in each."""

import pytest
import torch

from tessella.baselines import CategoricalMixture
from tessella.data.tables.shape import TableShape
from tessella.densities import CellMixture, Gaussian, conditional_flow, token_flow
from tessella.dequantizers import Dequantizer, RowContext, VoronoiCells
from tessella.dequantizers.components import KNOTS, MOST, component_counts, components_in_cells
from tessella.dequantizers.profiles import in_order, spread_out
from tessella.models import SemiDiscrete

COUNTS = (3, 2, 5)


@pytest.fixture
def cells():
    made = VoronoiCells(COUNTS, 2, squashing="root")
    made.map.tessellation.move_anchors(spread_out(torch.randn(3, 5, 2), COUNTS))
    made.narrow(0.2)
    return made


@pytest.mark.parametrize("dim", [2, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 12, 300])
def test_positions_are_apart_and_in_a_ball(count, dim):
    found = spread_out(torch.randn(1, count, dim), (count,))[0]
    radius = min(count, 256) ** (1 / dim)
    assert float(found.norm(dim=1).max()) <= radius + 1e-6
    if 1 < count <= 256:
        gaps = torch.cdist(found, found) + torch.eye(count) * 1e9
        assert float(gaps.min()) > 0.4


def test_neighbours_stay_neighbours():
    line = torch.stack([torch.linspace(-1, 1, 9), torch.zeros(9)], 1)
    found = spread_out(line[None] + 0.01 * torch.randn(1, 9, 2), (9,))[0]
    assert float(torch.corrcoef(torch.stack([line[:, 0], found[:, 0]]))[0, 1]) > 0.8
    assert bool((in_order(9, 2)[:, 0].diff() > 0).all())


def test_a_model_that_starts_from_a_mixture_is_that_mixture(cells):
    """With narrow noise the bound is the mixture's log-likelihood, whatever the row."""
    codes = torch.stack([torch.randint(0, count, (400,)) for count in COUNTS], 1)
    codes[:, 1] = codes[:, 0].clamp_max(1)
    mixture = CategoricalMixture(COUNTS, 4).fit(codes)
    cells.narrow(0.05)
    parts = components_in_cells(cells, codes, numbers=0)
    base = CellMixture(parts.counts, 2, 4)
    base.start(mixture.log_weight, mixture.log_table, parts.centre, parts.scale)
    noise = conditional_flow(Gaussian((3, 2)), 2, 8, 1, 4, tokens=True)
    dequantizer = Dequantizer(cells, noise, RowContext(TableShape(COUNTS), 4, 8, 1, tokens=True))
    model = SemiDiscrete(dequantizer, token_flow(base, 2, 8, 1, norm=False))
    with torch.no_grad():
        bound = model.log_prob(codes, samples=100)
    torch.testing.assert_close(bound, mixture.log_prob(codes), atol=0.03, rtol=0)


def test_rare_categories_share_components_where_there_are_many():
    many = VoronoiCells((500, 3), 2)
    many.narrow(0.2)
    often = torch.stack([torch.arange(400, 410).repeat(3), torch.zeros(30).long()], 1)
    parts = components_in_cells(many, often, numbers=1)
    assert parts.counts == component_counts((500, 3), 1) == (MOST, 3, KNOTS)
    assert len(parts.centre) == len(parts.scale) == MOST + 3 + KNOTS
    assert bool((parts.scale > 0).all())
    assert sorted(parts.category_component[0][400:410].tolist()) == list(range(10))  # the frequent ones, first
    torch.testing.assert_close(
        parts.centre[parts.category_component[0][400:410]], many.map.tessellation.anchors[0, 400:410].detach()
    )
    rows = parts.of_rows(torch.tensor([[499, 2], [0, 0]]), torch.tensor([[-9.0], [9.0]]))
    assert rows[:, 1:].tolist() == [[2, 0], [0, KNOTS - 1]]


def test_a_wrong_start_is_named():
    base = CellMixture((2, 3), 2, 4)
    with pytest.raises(ValueError, match=r"log_table: got shape \(5, 3\); expected \(5, 4\)"):
        base.start(torch.zeros(4), torch.zeros(5, 3), torch.zeros(5, 2), torch.ones(5, 2))
    with pytest.raises(ValueError, match="components: got 0"):
        CellMixture((2,), 2, 0)
