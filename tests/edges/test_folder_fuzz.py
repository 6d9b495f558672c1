"""Whatever is done to a saved folder, reading it works or says in one line what is wrong, soon and in little memory."""

import os
import random
import resource
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.edges.folders_for_tests import DENSITIES, copied, loaded, mutate, save_estimator, use

from tessella.folders import BrokenFolderError

EXAMPLES = int(os.environ.get("TESSELLA_FUZZ", "70"))  # `make fuzz` asks for more
SECONDS, KILOBYTES = 60, 600_000


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    made = {density: tmp_path_factory.mktemp("saved") / density for density in DENSITIES}
    for density, folder in made.items():
        save_estimator(density, folder)
        assert refusal(folder, density) == ""
    return made


class StillBusy(BaseException):  # nothing that catches errors shall catch it
    pass


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise StillBusy(f"after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def refusal(folder: Path, density: str) -> str:
    """What is said about a folder, by one of our errors; nothing where it can be used."""
    with at_most(SECONDS), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that rows are rare, that numbers overflow
        try:
            flow = loaded(folder, density)
        except (BrokenFolderError, FileNotFoundError) as error:
            return str(error)
        try:
            use(flow, density)
        except (ValueError, TypeError, OSError, ArithmeticError) as error:
            return str(error)
    return ""


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
@given(density=st.sampled_from(DENSITIES), seed=st.integers(0, 2**32))
def test_a_folder_that_was_changed_is_used_or_refused(folders, tmp_path_factory, density, seed):
    folder = copied(folders[density], tmp_path_factory.getbasetemp() / "changed")
    mutate(folder, random.Random(seed))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = refusal(folder, density)
    assert "\n" not in said
    assert len(said) < 2000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < KILOBYTES
