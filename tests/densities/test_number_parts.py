"""Numbers as parts of a line: every part has mass one, draws agree, nothing finite is impossible."""

import pytest
import torch

from tessella.data.tables.bins import NumberBins, NumberDistribution
from tessella.densities import intervals
from tessella.densities.number_parts import NumberParts, Sizes
from tessella.densities.part_tables import PartGroups, PartTable

SHAPES = {"uniform": (0.0, 0.0), "sharp": (1.0, -3.0), "wide": (-2.0, 1.5), "at the end": (50.0, -1.0)}
EDGES = torch.tensor([-2.0, 0.0, 5.0, 6.0])


def parts(whole: bool, atoms: tuple[float, ...] = (), others: int = 0) -> NumberParts:
    made = NumberParts([Sizes(3, len(atoms), others)], [whole])
    made.arrange([NumberBins(EDGES, torch.tensor(atoms), whole, False)])
    return made


def log_density(made: NumberParts, values: torch.Tensor, shape: tuple[float, float], state: int = 1):
    """Part and log p(v | part) of each value, all parts of one shape."""
    values = values.double()[:, None]
    placed = made(values, torch.full(values.shape, state), torch.float64)
    inner = intervals.log_density(placed.where, torch.tensor(shape).expand(*values.shape, 2))
    return placed.part[:, 0], torch.where(placed.inside, inner, 0)[:, 0]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_density_in_every_bin_and_tail_integrates_to_one(shape):
    """The midpoint rule between the edges; beyond, over t = d / (L + d)."""
    made = parts(whole=False)
    t = (torch.arange(100_000) + 0.5) / 100_000
    for k in range(3):
        width = EDGES[k + 1] - EDGES[k]
        part, inside = log_density(made, EDGES[k] + width * t, shape)
        assert (part == k + 1).all()
        assert float(inside.exp().mean() * width) == pytest.approx(1, abs=1e-5)
    distance, stretch = 8 * t / (1 - t), 8 / (1 - t) ** 2
    for k, values in ((0, EDGES[0] - distance), (4, EDGES[-1] + distance)):
        part, inside = log_density(made, values, shape)
        assert (part == k).all()
        assert float((inside.exp() * stretch).mean()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("atoms", [(), (-1.0, 3.0, 40.0)], ids=["no atoms", "atoms"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_masses_on_a_grid_sum_to_one_in_every_part(shape, atoms):
    """In a tail all but what is further away than 100,000."""
    values = torch.arange(-100_000, 100_001)
    part, inside = log_density(parts(True, atoms), values, shape)
    mass = torch.zeros(5 + len(atoms)).index_add(0, part, inside.exp())
    assert mass[1:4].tolist() == pytest.approx([1, 1, 1], abs=1e-12)
    assert mass[5:].tolist() == [1] * len(atoms)
    for tail in (0, 4):
        far = intervals.places(torch.tensor(1.0) - 8e-5, torch.tensor(8e-5).log(), torch.tensor(True), torch.float64)
        beyond = float(intervals.log_density(far, torch.tensor(shape)).exp())
        assert float(mass[tail]) == pytest.approx(1 - beyond, abs=1e-4)


@pytest.mark.parametrize("whole", [False, True], ids=["continuum", "grid"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_draws_follow_the_density(shape, whole):
    made, number = parts(whole, (3.0,) if whole else ()), 20_000
    for k in range(5):
        drawn = intervals.draw(torch.tensor(shape).expand(number, 2))
        values, position = made.at(0, torch.full((number,), k), drawn)
        part, inside = log_density(made, values, shape)
        located = made.locate(values[:, None], torch.ones(number, 1)).position[:, 0]
        assert (part == k).double().mean() > 0.999  # rounding may put a real number on an edge
        torch.testing.assert_close(position[part == k], located[part == k])
        if whole and 0 < k < 4:
            seen, times = values.unique(return_counts=True)
            _, expected = log_density(made, seen, shape)
            error = (expected.exp() / number).sqrt()
            assert ((times / number - expected.exp()).abs() < 5 * error + 1e-3).all()
        else:  # E 1/p(v) g(v) = 1 for the even density g
            _, even = log_density(made, values, (0.0, 0.0))
            weight = (even - inside).exp()
            assert float(weight.mean()) == pytest.approx(1, abs=6 * float(weight.std()) / number**0.5 + 1e-3)


def test_what_is_no_number_is_a_part_of_its_own():
    made = parts(whole=True, atoms=(3.0,), others=2)
    for state, expected in ((0, 6), (2, 7)):
        part, inside = log_density(made, torch.tensor([0.0]), (1.0, 1.0), state)
        assert (part.item(), inside.item()) == (expected, 0)
        assert made.values(0)[1][expected] == state


@pytest.mark.parametrize("whole", [False, True], ids=["continuum", "grid"])
def test_a_part_is_wide_where_it_has_other_values_than_its_first(whole):
    made = parts(whole, atoms=(3.0,), others=1)
    value, said = made.values(0)
    assert said.tolist() == [1] * 6 + [0]
    assert made.wide(0).tolist() == [True, True, True, not whole, True, False, False]
    located = made.locate(value[1:6, None], torch.ones(5, 1))
    assert located.part[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert located.position[~made.wide(0)[1:6], 0].tolist() == [0] * (1 + whole)


@pytest.mark.parametrize("whole", [False, True], ids=["continuum", "grid"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_no_finite_number_is_impossible(dtype, whole):
    big = torch.finfo(torch.float64).max
    values = torch.tensor([0.0, -0.0, 5e-324, *(s * v for s in (1, -1) for v in (1e-30, 2.0**52, 1e30, 1e300, big))])
    values = values.round() if whole else values
    made = parts(whole)
    for shape in ((0.0, 0.0), (1e6, -1e6), (-1e6, 1e6)):
        placed = made(values[:, None], torch.ones(len(values), 1, dtype=torch.int64), dtype)
        wanted = torch.tensor(shape, dtype=dtype).expand(len(values), 1, 2).requires_grad_()
        inside = intervals.log_density(placed.where, wanted)
        assert inside.isfinite().all()
        assert torch.autograd.grad(inside.sum(), wanted)[0].isfinite().all()


def test_wide_bins_of_a_grid_keep_their_digits_in_single_precision():
    """A bin of 10^9 integers: a mass is a difference of two numbers that single precision takes for the same."""
    made = NumberParts([Sizes(1, 0, 0)], [True])
    made.arrange([NumberBins(torch.tensor([0.0, 1e9]), torch.tensor([]), True, False)])
    values, state = torch.tensor([[0.0], [123_456_789.0], [999_999_999.0], [3e12]]), torch.ones(4, 1, dtype=torch.int64)
    shape = torch.tensor([0.5, -2.0]).expand(4, 1, 2)
    single, double = (
        intervals.log_density(made(values, state, dtype).where, shape.to(dtype))
        for dtype in (torch.float32, torch.float64)
    )
    torch.testing.assert_close(single.double(), double, atol=1e-4, rtol=1e-5)


def test_inside_a_group_the_place_rises_with_the_value_and_spans_it():
    """Atoms, bins and tails together: -1 at one end of a group, 1 at the other, and no two real numbers alike."""
    made, mass = parts(False, (-1.0, 0.5, 2.0), others=1), torch.tensor([1.0, 4, 3, 2, 1, 6, 2, 1])
    found = NumberDistribution(NumberBins(EDGES, torch.tensor([-1.0, 0.5, 2.0]), False, False), (mass / 20).log())
    for most in (1, 3, 100):
        group = found.grouped(most)
        groups = PartGroups(5, [(9, int(group.max()) + 2)], [1])
        groups.arrange([found], [group])
        assert torch.equal(groups.row[:5], torch.arange(5))
        assert int(groups.row[-1]) == groups.rows - 1
        values = torch.linspace(-30, 30, 2001)[:, None]
        placed = made(values, torch.ones_like(values, dtype=torch.int64), torch.float64)
        flat = placed.part[:, 0] + 5
        z = groups.centre[flat] + groups.radius[flat] * placed.position[:, 0]
        assert z.abs().max() <= 1 + 1e-12
        for row in groups.row[flat].unique():
            here = z[(groups.row[flat] == row) & placed.inside[:, 0]]
            assert (here.diff() > 0).all()


def test_a_table_has_curves_through_groups_and_points_for_categories():
    groups = PartGroups(2, [(3, 1)], [0])
    groups.row.copy_(torch.tensor([0, 1, 2, 2, 2]))
    groups.centre.copy_(torch.tensor([0.0, 0.0, -0.5, 0.0, 0.5]))
    table = PartTable(groups, 4, 1.0)
    every = table.all(groups)
    torch.testing.assert_close(every[:2], table.base[:2])
    slope, curve = table.bend[0].chunk(2)
    torch.testing.assert_close(every[4] - every[2], slope)
    torch.testing.assert_close(every[2] + every[4] - 2 * every[3], curve / 2)
    torch.testing.assert_close(table(groups, torch.tensor([1, 4]), torch.tensor([0.0, 0.5])), every[[1, 4]])


def test_any_part_of_a_group_can_be_the_only_likely_one():
    """Logits are quadratic inside a group: a bell around each of its atoms, as narrow as it must be."""
    groups = PartGroups(0, [(9, 1)], [0])
    groups.row.zero_()
    groups.centre.copy_(torch.linspace(-1, 1, 9))
    table = PartTable(groups, 3, 0.0)
    state = torch.tensor([0.0, 1.0, 0.0])
    for k, z in enumerate(groups.centre):
        with torch.no_grad():
            table.bend[0, 1], table.bend[0, 4] = 400 * z, -200
        assert (table.all(groups) @ state).softmax(0)[k] > 0.99
