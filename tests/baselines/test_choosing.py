"""Mixtures of categoricals chosen by validation rows."""

import pytest
import torch

from tessella.baselines.choosing import BACKGROUND, CANDIDATES, fit_mixture


def rows(count: int) -> torch.Tensor:
    """Four kinds of rows over three variables, one in ten of them disturbed."""
    kind = torch.randint(0, 4, (count, 1))
    codes = (kind + torch.arange(3)) % 4
    return torch.where(torch.rand(count, 3) < 0.1, torch.randint(0, 4, (count, 3)), codes)


def test_dependent_variables_get_several_components():
    assert fit_mixture((4, 4, 4), rows(800), rows(300)).components > 1 + CANDIDATES[0]


def test_mass_is_one_and_several_components_are_better_than_one():
    train, validation = rows(800), rows(300)
    several, one = fit_mixture((4, 4, 4), train, validation, components=4), fit_mixture((4, 4, 4), train, validation, 1)
    every = torch.cartesian_prod(*[torch.arange(4)] * 3)
    torch.testing.assert_close(several.log_prob(every).exp().sum(), torch.tensor(1.0))
    assert float(several.log_prob(validation).mean() - one.log_prob(validation).mean()) > 0.5


def test_a_row_of_no_component_is_left_to_the_background():
    """Its likelihood is at least that of independent columns times the weight of the background component."""
    train = torch.tensor([[0, 0, 0], [1, 1, 1], [2, 2, 2]]).repeat(100, 1)
    strange = torch.tensor([[0, 1, 2]])
    found = fit_mixture((3, 3, 3), train, train, components=3).log_prob(strange).exp()
    assert float(found) >= 0.99 * BACKGROUND / 27


@pytest.mark.parametrize(("seconds", "most"), [(0.0, 1), (None, 256)])
def test_dear_candidates_are_left_out(seconds, most):
    found = fit_mixture((4, 4, 4), rows(800), rows(300), seconds=seconds)
    assert found.components - 1 <= most
