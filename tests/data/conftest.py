import os
from pathlib import Path

import pytest


@pytest.fixture
def given_data() -> Path:
    """The folder TESSELLA_DATA, for the tests that need tables which are not shipped."""
    needed = ("covtype.npz.xz", "poker_partial.npz.xz", "uscensus90_spmf10k.npz.xz")
    folder = os.environ.get("TESSELLA_DATA")
    if not folder or not all((Path(folder) / name).is_file() for name in needed):
        pytest.skip(f"needs TESSELLA_DATA, a folder with {', '.join(needed)} (see docs/data.md)")
    return Path(folder)


@pytest.fixture
def empty_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty TESSELLA_DATA, an empty cache and no network."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("TESSELLA_DATA", str(folder))
    monkeypatch.setenv("TESSELLA_CACHE", str(tmp_path / "cache"))

    def no_network(url: str, path: Path) -> Path:
        raise OSError("no network in tests")

    monkeypatch.setattr("tessella.data.locate.fetch", no_network)
    return folder


@pytest.fixture
def nothing_shipped(empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, and the package brings no compact files either."""
    monkeypatch.setattr("tessella.data.locate.folders", lambda: iter([empty_data]))
    return empty_data
