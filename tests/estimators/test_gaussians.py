"""Gaussian mixtures that flows start from: scikit-learn's densities, and no more components than rows like."""

import numpy as np
import pytest
import torch
from sklearn import mixture

from tessella.densities import GaussianMixture
from tessella.estimators.gaussians import fit_gaussians, mean_nll


def blobs(rows: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    centres = torch.tensor([[-3.0, 0.0, 1.0], [3.0, 0.0, -1.0]])
    turn = torch.tensor([[1.0, 0.0, 0.0], [0.8, 0.3, 0.0], [0.0, 0.5, 0.4]])
    which = torch.randint(2, (rows,), generator=generator)
    return centres[which] + torch.randn(rows, 3, generator=generator) @ turn.mT


def test_densities_are_those_of_scikit_learn():
    x = blobs(500, 0)
    theirs = mixture.GaussianMixture(3, random_state=0).fit(x.numpy())
    ours = GaussianMixture.of(*(torch.from_numpy(p) for p in (theirs.weights_, theirs.means_, theirs.covariances_)))
    with torch.no_grad():
        np.testing.assert_allclose(ours.log_prob(x).numpy(), theirs.score_samples(x.numpy()), rtol=1e-9)
        np.testing.assert_allclose(ours.means().numpy(), theirs.means_, atol=1e-9)
        assert np.array_equal(ours.log_joint(x).argmax(-1).numpy(), theirs.predict(x.numpy()))


def test_more_components_are_tried_while_validation_rows_like_them():
    train, validation = blobs(1000, 0), blobs(500, 1)
    fitted = fit_gaussians(train, validation)
    assert min(fitted, key=lambda k: fitted[k][1]) == 2
    assert list(fitted) == [1, 2, 4, 8]
    assert fitted[2][1] == pytest.approx(mean_nll(fitted[2][0], validation))


def test_few_rows_allow_few_components_and_no_time_one_candidate():
    assert list(fit_gaussians(blobs(5, 0), blobs(5, 1))) in ([1], [1, 2])
    assert list(fit_gaussians(blobs(100, 0), blobs(50, 1), seconds=1e-9)) == [1]


def test_a_component_that_collapses_is_widened():
    """Rows on a line: without variance added, no covariance has an inverse."""
    x = torch.linspace(-1, 1, 50)[:, None] * torch.ones(1, 3)
    fitted = fit_gaussians(x, x, (2,))
    assert np.isfinite(fitted[2][1])
