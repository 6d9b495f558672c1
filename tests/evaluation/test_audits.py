"""Each audit passes on a model that deserves it, and fails on one that does not."""

import pytest
import torch
from tests.evaluation.models_for_tests import (
    ALL_ROWS,
    COUNTS,
    Independently,
    Measured,
    Shifted,
    mixture,
    tight,
    untrained,
)

from tessella.baselines import Independent
from tessella.baselines.choosing import fit_mixture
from tessella.dequantizers import CellsConfig
from tessella.evaluation import (
    Grid,
    agreement_audit,
    entropy_floor_audit,
    evaluate,
    integral_audit,
    sandwich_audit,
    sum_to_one_audit,
)

GEOMETRIES = list(CellsConfig.kinds)
GOOD = {"exact": mixture, "bound": tight}


def reference(model):
    """A mixture of categoricals, fitted to rows that the model drew."""
    (rows,) = model.sample(3000)
    return fit_mixture(COUNTS, rows[:2000], rows[2000:])


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_model_passes(kind):
    model = GOOD[kind]()
    total = sum_to_one_audit(model, COUNTS, samples=4000)
    for audit in (total, sandwich_audit(model), agreement_audit(model, reference(model))):
        assert audit is not None
        assert audit.passed, audit


@pytest.mark.parametrize("kind", GOOD)
def test_probabilities_that_are_too_large_fail(kind):
    model = Shifted(GOOD[kind](), 0.3)
    for result in (sum_to_one_audit(model, COUNTS, samples=4000), agreement_audit(model, reference(model))):
        assert result is not None
        assert result.passed is False, result


@pytest.mark.parametrize("nats", [0.05, -0.05, 1e-4])
def test_an_exact_sum_sees_the_fourth_digit(nats):
    result = sum_to_one_audit(Shifted(mixture(), nats), COUNTS)
    assert result is not None
    assert result.passed is False, result


@pytest.mark.parametrize("audit", [sum_to_one_audit, agreement_audit])
def test_exact_probabilities_that_are_too_small_fail(audit):
    model = Shifted(mixture(), -0.3)
    result = audit(model, COUNTS if audit is sum_to_one_audit else reference(model))
    assert result.passed is False, result


@pytest.mark.parametrize("kind", GOOD)
def test_rows_from_another_distribution_fail(kind):
    """Every column is right, and so is every probability; only the rows are not drawn from them."""
    model = Independently(GOOD[kind]())
    total = sum_to_one_audit(model, COUNTS, samples=4000)
    assert total is not None
    assert total.passed, total
    result = agreement_audit(model, reference(model))
    assert result.passed is False, result
    assert "not drawn from P" in result.message


def test_a_reference_that_is_far_away_cannot_tell():
    """No row is likely under both: also where all rows of each are the same, and no ratio has any spread."""
    far, model = (Independent(COUNTS).fit(torch.tensor([row]).expand(100_000, -1)) for row in ([0, 0, 0], [2, 1, 3]))
    result = agreement_audit(model, far)
    assert result.passed is None
    assert str(result).startswith("cannot tell")


def test_the_bridge_finds_the_mass_where_plain_ratios_do_not():
    """P half as wide as g and the other way round: one of the plain ratios has no variance to speak of."""
    narrow, wide = Measured(0.3), Measured(2.0)
    for model, other in ((narrow, wide), (wide, narrow)):
        for nats in (0.0, 0.3, -0.3):
            result = agreement_audit(Shifted(model, nats), other, rows=20_000)
            assert abs(result.value["log_mass"] - nats) < 4 * result.value["error"] < 0.1
            assert result.passed == (nats == 0)


def numbers_grid(points: int = 400) -> Grid:
    axis = torch.linspace(-8, 14, points)
    number = Grid.of_axis(axis, torch.full((points,), 22 / points))
    codes = Grid.of_codes((3,))
    absent = codes.where(codes.points[0][:, 0] == 0).times(Grid.of_axis(torch.zeros(1)))
    return absent.plus(codes.where(codes.points[0][:, 0] > 0).times(number))


@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_densities_of_numbers_integrate_to_one(spread):
    assert integral_audit(Measured(spread), numbers_grid()).passed
    for nats in (0.05, -0.05):
        result = integral_audit(Shifted(Measured(spread), nats), numbers_grid())
        assert result.passed is False, result


def test_a_loose_bound_is_shown():
    """The noise of a Gaussian in cells of a density it does not know: a valid bound, and no value."""
    result = sandwich_audit(untrained(noise="gaussian"), rows=500)
    assert result.passed is False
    assert "wide" in result.message
    assert result.value["upper"] > result.value["lower"] + 0.5
    assert result.value["unexplained"] > 0.05


def test_a_sum_that_misses_mass_is_shown():
    """Noise that stays in a tenth of each cell, under a density that does not: its rows are never found."""
    model = tight()
    with torch.no_grad():
        model.dequantizer.cells.map.log_scale.sub_(4.0)
    total = sum_to_one_audit(model, COUNTS)
    assert total is not None
    assert total.passed is False, total
    assert "of the mass is not found" in total.message
    sandwich = sandwich_audit(model)
    assert sandwich.passed is False
    assert sandwich.value["unexplained"] > 0.5


def test_too_few_samples_cannot_tell():
    result = sum_to_one_audit(untrained("argmax"), COUNTS, samples=400)
    assert result is not None
    assert result.passed is None, result


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_bounds_are_in_order_for_every_geometry(geometry):
    value = sandwich_audit(untrained(geometry), rows=300, samples=50).value
    assert value["lower"] < value["upper"]


def test_a_bound_above_the_truth_leaves_the_sandwich():
    model = tight()
    honest = model.chunked_log_weights
    model.chunked_log_weights = lambda *batch, samples: [weights + 0.5 for weights in honest(*batch, samples=samples)]
    result = sandwich_audit(model)
    assert result.passed is False
    assert "above the upper" in result.message


@pytest.mark.parametrize("geometry", ["binary-argmax", "ordinal"])
def test_space_that_is_nobodys_is_counted(geometry):
    """Three categories of four orthants, slabs in the middle of a line: what is outside is missing from the sum."""
    model = untrained(geometry)
    total, sandwich = sum_to_one_audit(model, COUNTS, samples=4000), sandwich_audit(model, rows=4000)
    assert total is not None
    error = total.value["error"] + (sandwich.value["unreached"] / 4000) ** 0.5
    assert abs(total.value["missing"] - sandwich.value["unreached"]) < 4 * error < 0.1
    assert sandwich.value["unexplained"] >= sandwich.value["unreached"] > 0.1
    assert sandwich.passed is False
    assert "does not reach" in sandwich.message


def test_exact_models_have_nothing_between_the_bounds():
    result = sandwich_audit(mixture())
    assert result.passed
    assert "exact" in result.message


def test_entropy_floor():
    below = entropy_floor_audit(evaluate(mixture(), (ALL_ROWS,), entropy_floor=100.0))
    assert below is not None
    assert below.passed is False
    assert "entropy floor" in str(below)
    above = entropy_floor_audit(evaluate(mixture(), (ALL_ROWS,), entropy_floor=0.0))
    assert above is not None
    assert above.passed
    assert entropy_floor_audit(evaluate(mixture(), (ALL_ROWS,))) is None


def test_too_many_rows_are_not_enumerated():
    assert sum_to_one_audit(mixture(), (100, 100, 100)) is None


def test_rows_of_the_models_own_with_no_probability_fail():
    model = Shifted(mixture(), -torch.inf)
    result = agreement_audit(model, mixture())
    assert result.passed is False
    assert "2000 of 2000 rows of the model's own" in result.message


def test_what_is_asked_of_a_model_is_named():
    model = Shifted(mixture(), 0.0)
    model.exact = False
    with pytest.raises(TypeError, match="got a Shifted that is not exact; expected an ImportanceBound"):
        sandwich_audit(model)
