"""Rows given some of their values, and variables of many categories: against enumeration."""

from itertools import product

import pytest
import torch
from tests.baselines.test_baseline_laws import ALL_ROWS, COUNTS, dependent_rows, ready

from tessella.baselines import BlockAutoregressiveMixture

GIVEN = [{}, {0: 1}, {3: 1}, {2: 3, 0: 2}, {0: 0, 1: 0, 2: 0}, {0: 1, 1: 0, 2: 2, 3: 1}]


@pytest.mark.parametrize("given", GIVEN, ids=str)
@pytest.mark.parametrize("name", ["mixture", "blocks"])
def test_proposals_given_values_follow_the_enumerated_conditional(name, given):
    """The weights' mean is P(given); the weighted share of each row is its conditional probability."""
    model, number = ready(name), 20_000
    codes, log_weight = model.propose(number, given)
    fits = torch.stack([ALL_ROWS[:, j] == code for j, code in given.items()] or [torch.ones(24).bool()]).all(0)
    probability = torch.where(fits, model.log_prob(ALL_ROWS).exp(), 0)
    assert log_weight.exp().mean().item() == pytest.approx(probability.sum().item(), rel=0.05)
    weight = log_weight.softmax(0)
    found = torch.stack([weight[(codes == row).all(1)].sum() for row in ALL_ROWS])
    assert (found - probability / probability.sum()).abs().sum().item() / 2 < 0.02
    assert found[~fits].sum() == 0
    if name == "mixture":
        assert log_weight.std() < 1e-12


@pytest.fixture
def few_outcomes(monkeypatch):
    """Variables of more than 4 categories share outcomes."""
    for module, name, value in (("baselines.blocks", "MOST", 4), ("dequantizers.components", "MOST", 4)):
        monkeypatch.setattr(f"tessella.{module}.{name}", value)
    monkeypatch.setattr("tessella.dequantizers.components.SHARED", 2)


def test_rare_categories_share_outcomes_and_mass_stays_one(few_outcomes):
    counts = (3, 9, 4)
    model = BlockAutoregressiveMixture(counts, groups=3, components=2, width=8, layers=1)
    codes = dependent_rows(400, counts)
    model.start(codes)
    rows = torch.tensor(list(product(*map(range, counts))))
    before = model.log_prob(rows)
    marginal = torch.stack([before[rows[:, 1] == k].exp().sum() for k in range(9)])
    counted = torch.bincount(codes[:, 1], minlength=9) / len(codes)
    assert (marginal - counted).abs().max() < 0.12  # components are parted, so only near the counts
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    probability = model.log_prob(rows).exp()
    assert probability.sum().item() == pytest.approx(1.0, abs=1e-12)
    draws = model.sample(20_000)
    seen = torch.stack([(draws == row).all(1).double().mean() for row in rows])
    assert (seen - probability).abs().sum().item() / 2 < 0.04
    assert sorted(model.outcome[model.segment(1)].unique().tolist()) == [0, 1, 2, 3]
    assert torch.equal(model.outcome[model.segment(2)], torch.arange(4))


def test_a_start_from_all_rows_is_not_undone_by_the_first_batch():
    model = BlockAutoregressiveMixture(COUNTS, groups=2, components=2, width=8, layers=1)
    model.start(dependent_rows(300, COUNTS))
    before = model.log_prob(ALL_ROWS)
    model.initialize(ALL_ROWS[:2])
    assert torch.equal(before, model.log_prob(ALL_ROWS))
