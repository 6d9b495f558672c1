"""Whatever is done to a saved folder, reading it works or says in one line what is wrong, soon and in little memory."""

import os
import random
import re
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.edges.folders_for_tests import (
    DENSITIES,
    copied,
    loaded,
    mutate,
    save_estimator,
    save_overview,
    save_run,
    use,
)

from tessella.cli.evaluate import evaluate
from tessella.cli.sample import sample
from tessella.data.tables.cells import CellError
from tessella.estimators.saving import DESCRIPTION
from tessella.folders import BrokenFolderError
from tessella.models.restoring import DamagedModelError
from tessella.report.page import FILE, write_page

EXAMPLES = int(os.environ.get("TESSELLA_FUZZ", "40"))  # `make fuzz` asks for more
SECONDS, KILOBYTES = 60, 600_000


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    made = {density: tmp_path_factory.mktemp("saved") / density for density in DENSITIES}
    for density, folder in made.items():
        save_estimator(density, folder)
        assert refusal(use_model, folder, density) == ""
    return made


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    save_run(folder)
    assert refusal(use_run, folder) == ""
    return folder


@pytest.fixture(scope="module")
def overview(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("overview")
    save_overview(folder)
    assert refusal(use_overview, folder) == ""
    return folder


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


OURS = (BrokenFolderError, FileNotFoundError, DamagedModelError)


def refusal(act: Callable[..., Any], *arguments: Any) -> str:
    """What is said, by one of our errors, in one line, soon and in little memory; nothing where all went well."""
    before, said = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, ""
    with at_most(SECONDS), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that rows are rare, that numbers overflow
        try:
            act(*arguments)
        except OURS as error:
            said = str(error)
    assert "\n" not in said
    assert len(said) < 2000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < KILOBYTES
    return said


def use_model(folder: Path, density: str) -> None:
    flow = loaded(folder, density)
    with suppress(CellError):  # a column that knows other values refuses some of the table's
        use(flow, density)


def use_run(folder: Path) -> None:
    try:
        evaluate(folder, rows=3, samples=2)
    except ValueError as error:  # the name of another table may be one that there is not
        if not re.match("table '.*': not known; expected one of", str(error)):
            raise
    sample(folder, rows=3)


def use_overview(folder: Path) -> None:
    write_page(folder, folder / "report.html")


fuzzed = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
seeds = st.integers(0, 2**32)


@fuzzed
@given(density=st.sampled_from(DENSITIES), seed=seeds)
def test_a_model_that_was_changed_is_used_or_refused(folders, tmp_path_factory, density, seed):
    folder = copied(folders[density], tmp_path_factory.getbasetemp() / "changed")
    mutate(folder, random.Random(seed), DESCRIPTION)
    refusal(use_model, folder, density)


@fuzzed
@given(seed=seeds)
def test_a_run_that_was_changed_is_used_or_refused(run, tmp_path_factory, seed):
    folder = copied(run, tmp_path_factory.getbasetemp() / "changed")
    mutate(folder, random.Random(seed), "config.json")
    refusal(use_run, folder)


@fuzzed
@given(seed=seeds)
def test_an_overview_that_was_changed_is_drawn_or_refused(overview, tmp_path_factory, seed):
    folder = copied(overview, tmp_path_factory.getbasetemp() / "changed")
    mutate(folder, random.Random(seed), FILE)
    refusal(use_overview, folder)
