"""What `evaluate` says of bounds and of exact values."""

import pytest
import torch
from tests.evaluation.models_for_tests import ALL_ROWS, mixture, untrained

from tessella.evaluation import evaluate


def test_evaluation_reports_consistent_numbers():
    result = evaluate(untrained(), (ALL_ROWS.repeat(20, 1),), samples=100)
    assert result.rows == 480
    assert result.elbo_nll > result.iw_nll
    assert 0 < result.gap < result.elbo_nll - result.iw_nll
    assert result.stderr > 0
    assert "IW-100" in str(result)
    assert "floor" not in str(result)


def test_an_exact_value_stands_for_both_bounds():
    model = mixture()
    result = evaluate(model, (ALL_ROWS,), samples=100, entropy_floor=0.5)
    assert result.elbo_nll == result.iw_nll == pytest.approx(-float(model.log_prob(ALL_ROWS).mean()))
    assert (result.iw_samples, result.gap) == (0, 0.0)
    assert str(result).startswith("exact")
    assert "entropy floor" in str(result)


def test_a_row_that_is_not_finite_is_an_error():
    model = untrained()
    with torch.no_grad():
        next(model.density.parameters()).fill_(torch.nan)
    with pytest.raises(ValueError, match="24 of 24 rows are not finite"):
        evaluate(model, (ALL_ROWS,), samples=5)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="got 0 rows and 10 samples"):
        evaluate(untrained(), (ALL_ROWS[:0],), samples=10)

    class NoWeights:
        exact = False

    with pytest.raises(TypeError, match="got a NoWeights that is not exact; expected one with importance weights"):
        evaluate(NoWeights(), (ALL_ROWS,))
