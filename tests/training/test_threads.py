"""Threads: what the process may use, which number is chosen, when it is chosen again. No test looks at a clock."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
import torch
from small_models import NOISY, Noisy, fit_noisy, noisy_source

from tessella.training import RunFolder, fit
from tessella.training.pace import Pace, measure_pace
from tessella.training.threads import (
    STRETCH,
    Watch,
    candidates,
    contended,
    cpu_quota,
    fastest,
    uncontended,
    usable,
    using,
)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("files", "membership", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, "0::/\n", 1.5),
        ({"cpu.max": "max 100000\n"}, "0::/\n", inf),
        ({"jobs/cpu.max": "400000 100000\n", "jobs/mine/cpu.max": "max 100000\n"}, "0::/jobs/mine\n", 4.0),
        ({"jobs/cpu.max": "200000 100000\n", "jobs/mine/cpu.max": "50000 100000\n"}, "0::/jobs/mine\n", 0.5),
        ({"jobs/other/cpu.max": "50000 100000\n"}, "0::/jobs/mine\n", inf),
        ({"cpu/cpu.cfs_quota_us": "250000\n", "cpu/cpu.cfs_period_us": "100000\n"}, "4:cpu,cpuacct:/docker/ab\n", 2.5),
        ({"cpu/a/cpu.cfs_quota_us": "-1\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, "4:cpu,cpuacct:/a\n", inf),
        ({"cpu.max": "300000 100000\n"}, None, 3.0),
        ({"cpu.max": "nonsense\n"}, "0::/\n", inf),
        ({}, "0::/\n", inf),
    ],
    ids=["v2", "v2-max", "above", "tightest", "others", "v1-container", "v1-none", "unknown-group", "garbage", "none"],
)
def test_quotas_are_read_from_control_groups(tmp_path: Path, files: dict, membership: str | None, expected: float):
    for name, text in files.items():
        write(tmp_path / "cgroup" / name, text)
    if membership is not None:
        write(tmp_path / "membership", membership)
    assert cpu_quota(tmp_path / "cgroup", tmp_path / "membership") == expected


@pytest.mark.parametrize(("quota", "expected"), [(inf, 3), (2.9, 2), (0.3, 1)])
def test_usable_is_the_least_of_all_limits(monkeypatch, quota: float, expected: int):
    monkeypatch.setattr("tessella.training.threads.os.sched_getaffinity", lambda _: set(range(5)), raising=False)
    monkeypatch.setattr("tessella.training.threads.cpu_quota", lambda: quota)
    monkeypatch.setattr("tessella.training.threads.torch.get_num_threads", lambda: 3)
    assert usable() == expected


def test_what_is_usable_does_not_depend_on_what_is_used(monkeypatch):
    monkeypatch.setattr("tessella.training.threads.os.sched_getaffinity", lambda _: set(range(5)), raising=False)
    monkeypatch.setattr("tessella.training.threads.cpu_quota", lambda: inf)
    most = usable()
    with using(most + 1), using(1):
        assert usable() == most
    assert usable() == most


@pytest.mark.parametrize(("busy", "expected"), [(False, 4), (True, 1)])
def test_work_without_a_trial_takes_one_thread_where_more_would_wait(monkeypatch, busy: bool, expected: int):
    monkeypatch.setattr("tessella.training.threads.usable", lambda: 4)
    monkeypatch.setattr("tessella.training.threads.contended", lambda threads, additions: busy)
    before = torch.get_num_threads()
    assert uncontended() == expected
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({1: 1.0}, 1),
        ({1: 1.0, 2: 0.9, 4: 0.1}, 1),
        ({1: 1.0, 2: 0.5, 4: 0.4, 8: 0.39}, 4),
        ({1: 0.13, 2: 7.0, 4: 7.0}, 1),
        ({1: 1.0, 2: inf}, 1),
    ],
    ids=["alone", "not-clearly-faster", "as-far-as-it-pays", "a-busy-core", "gave-up"],
)
def test_fewer_threads_unless_more_are_clearly_faster(seconds: dict[int, float], expected: int):
    assert fastest(lambda threads, worth: seconds[threads], list(seconds)) == (expected, seconds[expected])


def test_a_trial_is_told_what_would_be_worth_it():
    told = []
    fastest(lambda threads, worth: told.append((threads, worth)) or 1.0 / threads, candidates(4))
    assert told == [(1, inf), (2, pytest.approx(1.0 / 1.15)), (4, pytest.approx(0.5 / 1.15))]


@pytest.mark.parametrize(("wait", "expected"), [(1, False), (3, False), (50, True)])
def test_threads_that_wait_for_each_other_are_noticed(wait: int, expected: bool):
    """On a clock that runs `wait` times as fast while there are two threads."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += wait if torch.get_num_threads() == 2 else 1
        return now

    with using(2):
        assert contended(2, clock=clock) == expected
        assert torch.get_num_threads() == 2


def test_a_collapse_is_several_times_slower_for_a_while():
    steady, slowed, hiccup = Watch(pace=0.1), Watch(pace=0.1), Watch(pace=0.1)
    assert not any(steady.saw(0.25) for _ in range(1000))
    assert [slowed.saw(7.0) for _ in range(2)] == [False, True]
    assert not any(hiccup.saw(seconds) for seconds in [STRETCH, *[0.1] * 1000])


def test_a_watch_rests_before_it_looks():
    watch = Watch(pace=0.1, rest=30.0)
    assert [watch.saw(10.0) for _ in range(5)] == [False, False, False, False, True]


def test_threads_are_as_before_even_after_an_error():
    def fails() -> None:
        with using(before + 1):
            torch.set_num_threads(before + 2)
            raise RuntimeError("inside")

    before = torch.get_num_threads()
    with pytest.raises(RuntimeError, match="inside"):
        fails()
    assert torch.get_num_threads() == before


def seen_in(monkeypatch) -> list[int]:
    """Threads of each loss that is computed."""
    seen, loss = [], Noisy.loss
    monkeypatch.setattr(Noisy, "loss", lambda self, batch: seen.append(torch.get_num_threads()) or loss(self, batch))
    return seen


def test_threads_that_were_asked_for_are_taken_and_given_back(tmp_path: Path, monkeypatch):
    seen, before = seen_in(monkeypatch), torch.get_num_threads()
    result = fit_noisy(tmp_path, replace(NOISY, steps=3, threads=3))
    assert set(seen) == {3} == {result.threads}
    assert torch.get_num_threads() == before


def test_a_resumed_run_keeps_its_threads(tmp_path: Path, monkeypatch):
    """Threads that a run has chosen are part of its state: others would round differently."""
    monkeypatch.setattr("tessella.training.run.usable", lambda: 4)
    config = replace(NOISY, steps=20, time_budget=1e-9)
    model, rows, about = Noisy(), (noisy_source(50), noisy_source(30)), {"model": "noisy"}
    first = fit(model, *rows, config, tmp_path, about, pace=Pace(0.1, 0.1, threads=2))
    assert (first.stopped, first.threads) == ("time_budget", 2)
    seen = seen_in(monkeypatch)
    again = fit(model, *rows, replace(config, time_budget=None), tmp_path, about, pace=Pace(0.1, 0.1, threads=4))
    assert (again.steps, again.threads, set(seen)) == (20, 2, {2})


def test_threads_are_chosen_again_when_the_pace_collapses(tmp_path: Path, monkeypatch, capsys):
    seen, asked = seen_in(monkeypatch), []

    class Collapses(Watch):
        def saw(self, seconds: float) -> bool:
            return not asked and len(seen) == 5

    def measured(*_: object, initialize: bool = True) -> Pace:
        asked.append(initialize)
        return Pace(0.2, 0.2, threads=1)

    monkeypatch.setattr("tessella.training.run.usable", lambda: 2)
    monkeypatch.setattr("tessella.training.run.Watch", Collapses)
    monkeypatch.setattr("tessella.training.run.measure_pace", measured)
    config = replace(NOISY, steps=10, progress=True)
    fit(Noisy(), noisy_source(50), noisy_source(30), config, tmp_path, pace=Pace(0.1, 0.1, threads=2))
    assert seen == [2] * 5 + [1] * 5
    assert asked == [False]
    said = capsys.readouterr().err
    assert "threads: 2 of 2, 10 steps/s" in said
    assert "threads: 1 instead of 2, as the pace collapsed; 5 steps/s" in said
    state = RunFolder(tmp_path).state()
    assert state is not None
    assert (state.threads, state.pace) == (1, 0.2)


def test_pace_tries_what_is_usable_and_only_that_which_was_asked_for(monkeypatch):
    tried: list[int] = []

    def choose(seconds, numbers):
        tried[:] = numbers
        return numbers[-1], seconds(numbers[-1], inf)

    monkeypatch.setattr("tessella.training.pace.fastest", choose)
    monkeypatch.setattr("tessella.training.pace.usable", lambda: 4)
    before = torch.get_num_threads()
    assert measure_pace(Noisy(), noisy_source(50), noisy_source(30), NOISY).threads == 4
    assert tried == [1, 2, 4]
    assert measure_pace(Noisy(), noisy_source(50), noisy_source(30), replace(NOISY, threads=3)).threads == 3
    assert tried == [3]
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_a_bad_number_of_threads_is_named(threads):
    with pytest.raises(ValueError, match=rf"threads: got {threads}; expected a positive integer, or None"):
        replace(NOISY, threads=threads)
