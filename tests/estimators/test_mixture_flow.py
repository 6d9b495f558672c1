"""MixtureFlow: exact densities in the units of the data, cells as clusters, scikit-learn's own checks."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator
from tests.estimators.frames_for_tests import small_flow

from tessella import MixtureFlow, TabularFlow

CENTRES = np.array([[0.0, 0.0], [400.0, 0.0], [0.0, 0.09], [400.0, 0.09]])


def small_mixture(**options) -> MixtureFlow:
    chosen = {"components": 4, "blocks": 1, "width": 8, "max_steps": 60, "device": "cpu", "random_state": 0}
    return MixtureFlow(**{**chosen, "progress": False, **options})


def clusters(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four clusters in columns of very different units, and which one each row is of."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 4, rows)
    return CENTRES[which] + rng.standard_normal((rows, 2)) * [20.0, 0.004], which


def normal_rows() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((300, 3))


@pytest.fixture(scope="module")
def fitted() -> MixtureFlow:
    return small_mixture().fit(clusters(2000, seed=0)[0])


def test_scikit_learn_agrees():
    """Every check applies and passes; array-API input is skipped by scikit-learn itself without SCIPY_ARRAY_API."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(small_mixture(components=2, max_steps=2), on_skip=None, on_fail=None)
    assert {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"} == {}
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


def test_density_is_near_the_truth_in_the_units_of_the_data(fitted):
    x, _ = clusters(4000, seed=1)
    z = (x[:, None] - CENTRES) / [20.0, 0.004]
    truth = np.log(np.exp(-0.5 * (z**2).sum(-1)).sum(1) / 4 / (2 * np.pi * 20.0 * 0.004))
    assert fitted.score(x) == pytest.approx(truth.mean(), abs=0.3)
    assert fitted.score(x) < truth.mean() + 0.03  # Gibbs; the rest is sampling error
    assert -fitted.best_validation_ == pytest.approx(fitted.score(x), abs=0.2)


def test_mass_is_one(fitted):
    """Quadrature in the units of the data."""
    steps = 600
    a, b = (np.arange(steps) + 0.5) / steps * 1600 - 600, (np.arange(steps) + 0.5) / steps * 0.36 - 0.135
    grid = np.stack(np.meshgrid(a, b, indexing="ij"), -1).reshape(-1, 2)
    mass = np.exp(fitted.score_samples(grid)).sum() * (1600 / steps) * (0.36 / steps)
    assert 0.9 < mass < 1.001  # the heavy tails leave the window


def test_cells_are_the_clusters_and_weights_their_shares(fitted):
    x, which = clusters(1000, seed=2)
    cells = fitted.predict(x)
    assert adjusted_rand_score(which, cells) > 0.98
    np.testing.assert_allclose(np.bincount(cells, minlength=4) / 1000, fitted.weights_, atol=0.06)


def test_samples_are_where_the_rows_are(fitted):
    rows = fitted.sample(2000)
    assert np.bincount(fitted.predict(rows), minlength=4).min() > 400
    np.testing.assert_allclose(np.median(np.abs(rows - [200.0, 0.045]), axis=0), [200.0, 0.045], rtol=0.1)
    assert np.array_equal(rows, fitted.sample(2000))
    assert not np.array_equal(rows, fitted.sample(2000, random_state=1))


@pytest.mark.parametrize("dim", [1, 5])
def test_any_number_of_columns(dim):
    x = np.random.default_rng(0).standard_normal((200, dim))
    flow = small_mixture(max_steps=5).fit(x)
    assert flow.score_samples(x).shape == (200,)
    assert flow.sample(7).shape == (7, dim)


def test_units_only_shift_the_scores():
    x, _ = clusters(300, seed=3)
    scores = small_mixture(max_steps=10).fit(x).score_samples(x)
    scaled = small_mixture(max_steps=10).fit(8 * x).score_samples(8 * x)
    np.testing.assert_allclose(scaled, scores - 2 * np.log(8), atol=1e-3)


def test_the_same_state_gives_the_same_flow_and_noise_is_left_alone():
    x, _ = clusters(300, seed=4)
    before = torch.get_rng_state()
    first, again = (small_mixture(max_steps=5).fit(x) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(first.score_samples(x), again.score_samples(x))
    assert not np.array_equal(
        first.score_samples(x), small_mixture(max_steps=5, random_state=1).fit(x).score_samples(x)
    )


def test_a_time_budget_plans_the_steps():
    flow = small_mixture(max_steps=None, time_budget=1.0).fit(clusters(300, seed=5)[0])
    assert flow.n_iter_ > 1
    assert flow.history_[-1]["step"] == flow.n_iter_


def test_saved_and_loaded_is_the_same_bit_by_bit(fitted, tmp_path):
    x, _ = clusters(50, seed=6)
    named = small_mixture(max_steps=2).fit(pd.DataFrame(x, columns=["a", "b"]))
    for flow, table in ((fitted, x), (named, pd.DataFrame(x, columns=["a", "b"]))):
        flow.save(tmp_path)
        loaded = MixtureFlow.load(tmp_path, device="cpu")
        assert np.array_equal(loaded.score_samples(table), flow.score_samples(table))
        assert np.array_equal(loaded.sample(20), flow.sample(20))
        assert loaded.get_params() == flow.get_params()
        assert loaded.history_ == flow.history_
    assert loaded.feature_names_in_.tolist() == ["a", "b"]


def test_estimators_do_not_load_each_other(fitted, tmp_path):
    fitted.save(tmp_path / "mixture")
    with pytest.raises(ValueError, match="got a MixtureFlow; expected a TabularFlow"):
        TabularFlow.load(tmp_path / "mixture")
    small_flow(max_steps=1).fit(np.array([["a", "x"], ["b", "y"]] * 20)).save(tmp_path / "table")
    with pytest.raises(ValueError, match="got a TabularFlow; expected a MixtureFlow"):
        MixtureFlow.load(tmp_path / "table")


def test_a_flow_that_learned_nothing_gives_way_to_its_gaussian_mixture(tmp_path):
    """No learning rate to speak of: what is kept is no worse on validation rows, says what it is, and can be saved."""
    x, which = clusters(600, seed=9)
    kept = small_mixture(max_steps=1, learning_rate=1e-9).fit(x)
    assert kept.density_ == "gaussian mixture"
    assert kept.best_validation_ == kept.initial_validation_
    assert adjusted_rand_score(which, kept.predict(x)) > 0.98
    kept.save(tmp_path)
    loaded = MixtureFlow.load(tmp_path, device="cpu")
    assert loaded.density_ == "gaussian mixture"
    assert np.array_equal(loaded.score_samples(x), kept.score_samples(x))
    assert np.array_equal(loaded.predict(x), kept.predict(x))
    assert np.array_equal(loaded.sample(20), kept.sample(20))


def test_a_flow_is_kept_where_it_is_better():
    """Rows of exponential distributions, which no few Gaussians fit."""
    x = np.random.default_rng(0).exponential(size=(2000, 2))
    flow = small_mixture(components=1, max_steps=200, learning_rate=5e-3).fit(x)
    assert flow.density_ == "flow"
    assert flow.best_validation_ < flow.initial_validation_ - 0.1


@pytest.mark.parametrize(("make", "fewest", "most"), [(lambda: clusters(800, 0)[0], 1, 4), (normal_rows, 1, 1)])
def test_validation_rows_choose_the_number_of_components(make, fewest, most):
    flow = small_mixture(components=None, max_steps=20).fit(make())
    assert fewest <= flow.components_ <= most
    assert flow.weights_.shape == (flow.components_,)


def test_frames_are_taken(fitted):
    x, _ = clusters(300, seed=7)
    flow = small_mixture(max_steps=2).fit(pl.DataFrame({"a": x[:, 0], "b": x[:, 1]}))
    assert flow.score_samples(pl.DataFrame({"a": x[:5, 0], "b": x[:5, 1]})).shape == (5,)


def test_clone_copies_settings_only(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert [name for name in vars(copy) if name.endswith("_")] == []


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"components": 0}, None, "components: got 0; expected at least 1"),
        ({"device": "tpu"}, None, "device: got 'tpu'; expected one of auto, cpu, cuda"),
        ({"validation_fraction": 1.0}, None, "validation_fraction: got 1.0; expected a number between 0 and 1"),
        ({"time_budget": -1}, None, "time_budget: got -1; expected a positive number"),
        ({}, np.array([[1.0, 2.0], [1.0, 3.0]] * 9), "column 0: got numbers of standard deviation 0.0; expected"),
        ({}, np.array([[1.0, 2.0], [2.0, 3.0]] * 9), "components: got 4; expected at most 2, the number of different"),
    ],
    ids=["components", "device", "validation", "budget", "constant", "few"],
)
def test_errors_say_what_was_expected(options, rows, message):
    with pytest.raises(ValueError, match=message):
        small_mixture(**options).fit(clusters(50, seed=8)[0] if rows is None else rows)


def test_n_is_checked(fitted):
    with pytest.raises(ValueError, match="n: got 0; expected a positive integer"):
        fitted.sample(0)
