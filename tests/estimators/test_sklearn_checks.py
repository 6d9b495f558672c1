"""scikit-learn's own checks, all of them."""

import warnings

from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from tests.estimators.frames_for_tests import small_flow


def test_scikit_learn_agrees():
    estimator = small_flow(max_steps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    assert failed == {}
    assert sum(result["status"] == "passed" for result in results) > 30


def test_clone_copies_settings_only(flow):
    copy = clone(flow)
    assert copy.get_params() == flow.get_params()
    assert [name for name in vars(copy) if name.endswith("_")] == []
