from pathlib import Path

import pytest
from tests.edges.edges_for_tests import HEADER, Tessella, fitted, rows_of_things, write


@pytest.fixture(scope="session")
def things(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("edges") / "things.csv", rows_of_things(120), HEADER)


@pytest.fixture(scope="session")
def model(things: Path) -> Path:
    return fitted(things, things.parent / "model")


@pytest.fixture
def tessella(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tessella:
    return Tessella(monkeypatch, capfd)
