"""Steps that fit into a budget. The pace is given: no test looks at a clock."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.training.small_models import NOISY, Gaussian, Noisy, gaussian_source, noisy_source

from tessella.training import RunFolder, TrainingConfig, fit
from tessella.training.budget import AHEAD, UNPLANNED, _with_steps, within_budget
from tessella.training.pace import Pace

PACE = Pace(update=0.1, validation=1.0, threads=1)
TIMED = replace(NOISY, time_budget=100.0)
SOURCES = noisy_source(50), noisy_source(30)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Models whose pace was measured, on a clock that ticks whenever somebody looks at it."""
    models: list[object] = []
    monkeypatch.setattr("tessella.training.budget.measure_pace", lambda model, *_: models.append(model) or PACE)
    monkeypatch.setattr("tessella.training.budget.time", SimpleNamespace(perf_counter=count().__next__))
    return models


def test_without_a_budget_nothing_is_built_or_measured(measured: list):
    config, pace = within_budget(NOISY, measured.pop, *SOURCES, validations=20)
    assert (config, pace, measured) == (replace(NOISY, validate_every=15, checkpoint_every=300), None, [])


def test_a_budget_has_room_for_as_many_steps_as_its_pace_says(measured: list):
    config, pace = within_budget(TIMED, lambda: "model", *SOURCES, validations=20)
    assert (pace, measured) == (PACE, ["model"])
    assert config.steps == PACE.steps_within(100.0, 20 + UNPLANNED)
    assert config.time_budget == 100.0


def test_time_that_is_gone_is_taken_from_the_budget_and_the_trial_with_it(measured: list):
    config, _ = within_budget(TIMED, Noisy, *SOURCES, validations=20, spent=30.0)
    assert config.time_budget == 100 - 30 - 1  # the clock ends it: steps are planned ahead of the pace
    assert config.steps == AHEAD * PACE.steps_within(69.0, 20 + UNPLANNED)
    config, _ = within_budget(TIMED, Noisy, *SOURCES, validations=20, spent=200.0)
    assert 0 < config.time_budget < 0.01
    assert (config.steps, config.validate_every) == (AHEAD, 1)


@pytest.mark.parametrize(("most", "expected"), [(7, 7), (10**6, 710), (None, 710)])
def test_never_more_than_max_steps(measured: list, most: int | None, expected: int):
    assert within_budget(TIMED, Noisy, *SOURCES, validations=20, max_steps=most)[0].steps == expected


def test_a_folder_with_the_same_budget_keeps_its_steps(measured: list, tmp_path: Path):
    planned, _ = within_budget(replace(TIMED, time_budget=4.0), Noisy, *SOURCES, validations=2, folder=tmp_path)
    fit(Noisy(), *SOURCES, planned, tmp_path)
    assert len(measured) == 1
    again, pace = within_budget(replace(TIMED, time_budget=4.0), Noisy, *SOURCES, validations=2, folder=tmp_path)
    assert (again, pace, len(measured)) == (planned, None, 1)
    more, _ = within_budget(replace(TIMED, time_budget=8.0), Noisy, *SOURCES, validations=2, folder=tmp_path)
    assert more.steps > planned.steps
    assert len(measured) == 2


@given(steps=st.integers(1, 5000), validations=st.integers(1, 60), warmup=st.integers(0, 500))
def test_what_follows_from_the_steps_fits_into_them(steps: int, validations: int, warmup: int):
    config = _with_steps(TrainingConfig(warmup_steps=warmup), steps, validations)
    assert -(-steps // config.validate_every) <= validations
    assert config.validate_every == 1 or -(-steps // (config.validate_every - 1)) > validations
    assert config.warmup_steps <= min(warmup, steps / 10)
    assert config.checkpoint_every == config.steps == steps


def test_a_run_validates_as_often_as_planned(tmp_path: Path):
    config, _ = within_budget(replace(NOISY, steps=57), Gaussian, *SOURCES, validations=10)
    fit(Gaussian(), gaussian_source(), gaussian_source(), config, tmp_path)
    validated = [line["step"] for line in RunFolder(tmp_path).read_metrics() if "validation" in line]
    assert validated == [*range(0, 57, 6), 57]
