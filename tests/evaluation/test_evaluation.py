"""Evaluation and the three audits; each audit is shown to fail where it should."""

import pytest
import torch

from tessella.evaluation import evaluate, floor_audit, sandwich_audit, sum_to_one_audit
from tessella.models import SemiDiscreteConfig, build
from tessella.models.semidiscrete import SemiDiscrete

COUNTS = (3, 2, 4)
ALL_ROWS = torch.cartesian_prod(torch.arange(3), torch.arange(2), torch.arange(4))


def small(dequantizer: str = "voronoi") -> SemiDiscrete:
    torch.manual_seed(0)
    config = SemiDiscreteConfig(
        dequantizer=dequantizer,
        blocks=2,
        width=8,
        layers=1,
        noise_width=8,
        context=4,
        density="flat",
        noise_base="student",
    )
    model = build(config, COUNTS)
    with torch.no_grad():
        for parameter in model.density.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


class Cheat(SemiDiscrete):
    """Adds nats to every log-likelihood: what a wrong determinant or a forgotten term does."""

    nats = 1.0

    def elbo(self, codes):
        return super().elbo(codes) + self.nats


def cheat(nats: float) -> Cheat:
    honest = small()
    model = Cheat(honest.dequantizer, honest.density)
    model.nats = nats
    return model


@pytest.mark.parametrize("dequantizer", ["voronoi", "laguerre", "simplex", "argmax", "binary-argmax", "ordinal"])
def test_audits_pass_for_every_dequantizer(dequantizer):
    model = small(dequantizer)
    one = sum_to_one_audit(model, COUNTS, samples=400)
    assert one is not None
    assert one.passed, one
    sandwich = sandwich_audit(model, rows=300, samples=50)
    assert sandwich.passed, sandwich


def test_audits_catch_a_cheat():
    one = sum_to_one_audit(cheat(1.0), COUNTS, samples=4000)
    assert one is not None
    assert not one.passed
    # An untrained q leaves a wide sandwich, so only a large cheat leaves it; a trained model's is narrow.
    assert not sandwich_audit(cheat(15.0), rows=300, samples=50).passed


def test_floor_audit():
    result = evaluate(small(), ALL_ROWS, samples=20, floor=100.0)
    below = floor_audit(result)
    assert below is not None
    assert not below.passed
    assert "-" in below.message
    above = floor_audit(evaluate(small(), ALL_ROWS, samples=20, floor=0.0))
    assert above is not None
    assert above.passed
    assert floor_audit(evaluate(small(), ALL_ROWS, samples=20)) is None


def test_evaluation_reports_consistent_numbers():
    result = evaluate(small(), ALL_ROWS.repeat(20, 1), samples=100)
    assert result.rows == 480
    assert result.elbo_nll > result.iw_nll
    assert 0 < result.gap < result.elbo_nll - result.iw_nll
    assert result.stderr > 0
    assert "IW-100" in str(result)
    assert "floor" not in str(result)


def test_too_many_rows_are_not_enumerated():
    assert sum_to_one_audit(small(), (100, 100, 100)) is None


def test_a_row_that_is_not_finite_is_an_error():
    model = small()
    with torch.no_grad():
        next(model.density.parameters()).fill_(torch.nan)
    with pytest.raises(ValueError, match="24 of 24 rows are not finite"):
        evaluate(model, ALL_ROWS, samples=5)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="got 0 rows and 10 samples"):
        evaluate(small(), ALL_ROWS[:0], samples=10)
