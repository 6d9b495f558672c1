import pytest
from tests.estimators.frames_for_tests import FRAMES, mixed_columns, small_flow


@pytest.fixture(scope="session")
def columns():
    return mixed_columns()


@pytest.fixture(scope="session")
def fitted(columns):
    """One estimator per library, fitted to the same table."""
    return {library: small_flow().fit(make(columns)) for library, make in FRAMES.items()}


@pytest.fixture(scope="session")
def flow(fitted):
    return fitted["pandas"]


@pytest.fixture
def frame(columns):
    return FRAMES["pandas"](columns)
