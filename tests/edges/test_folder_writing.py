"""Folders are written whole, by one process at a time; what cannot be written is known before, or put elsewhere."""

import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.edges.folders_for_tests import description_of, loaded, save_estimator
from tests.estimators.frames_for_tests import small_flow
from tests.training.small_models import NOISY, fit_noisy

from tessella import TabularFlow, folders
from tessella.cli.fit import CHECKPOINTS, fit_and_report
from tessella.estimators import saving
from tessella.folders import LOCK, BrokenFolderError, BusyFolderError, claimed, write_whole
from tessella.training import RunFolder
from tessella.training.learner import Learner

TABLE = np.array([["a", "x"], ["b", "y"]] * 30)


@pytest.fixture(scope="module")
def flow() -> TabularFlow:
    return small_flow(density="autoregressive", max_steps=2).fit(TABLE)


class DiskFull:
    """From now on, nothing fits: as if another program had taken the rest of the disk."""

    def __init__(self, monkeypatch, under: Path):
        self.under, self.full, self._fsync = str(under), False, os.fsync
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, number: int) -> None:
        if self.full and os.readlink(f"/proc/self/fd/{number}").startswith(self.under):
            raise OSError(28, "No space left on device")
        self._fsync(number)


@pytest.fixture
def disk(tmp_path, monkeypatch) -> DiskFull:
    return DiskFull(monkeypatch, tmp_path)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_modes_follow_the_umask(flow, tmp_path, umask):
    before = os.umask(umask)
    try:
        flow.save(tmp_path / "model")
        fit_noisy(tmp_path / "run", replace(NOISY, steps=2))
    finally:
        os.umask(before)
    for folder in ("model", "run"):
        modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / folder).iterdir()}
        assert modes == {0o666 & ~umask}


def test_a_save_that_fails_leaves_the_model_that_was_there(flow, disk, tmp_path):
    flow.save(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    disk.full = True
    other = small_flow(density="autoregressive", max_steps=3, random_state=1).fit(TABLE)
    with pytest.raises(OSError, match="No space left"):
        other.save(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert len(other.sample(3)) == 3  # it is still there, and can be saved elsewhere


def test_halves_of_two_saves_are_noticed(flow, tmp_path):
    flow.save(tmp_path / "one")
    small_flow(density="autoregressive", max_steps=3, random_state=1).fit(TABLE).save(tmp_path / "two")
    (tmp_path / "two" / saving.WEIGHTS).replace(tmp_path / "one" / saving.WEIGHTS)
    with pytest.raises(BrokenFolderError, match="expected both of one save"):
        TabularFlow.load(tmp_path / "one")


def test_a_folder_saved_without_a_checksum_loads(tmp_path):
    save_estimator("array", tmp_path)
    said = description_of(tmp_path)
    assert said.pop("weights")
    write_whole({tmp_path / saving.DESCRIPTION: saving.json.dumps(said).encode()})
    assert len(loaded(tmp_path, "array").sample(2)) == 2


@pytest.mark.parametrize("what", ["a file", "below a file", "no room", "nothing can be written"])
def test_a_folder_that_cannot_be_written_is_known_before_training(what, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    out = tmp_path / {"a file": "file", "below a file": "file/model"}.get(what, "model")
    if what == "no room":
        monkeypatch.setattr(folders.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    if what == "nothing can be written":
        out = Path("/proc/tessella-model")
    flow = small_flow()
    monkeypatch.setattr(type(flow), "fit_resumable", lambda *_: pytest.fail("it was trained"))
    with pytest.raises(OSError, match="MB are free" if what == "no room" else "cannot be made") as caught:
        fit_and_report(flow, TABLE, out)
    assert str(out) in str(caught.value)


def test_a_fit_that_cannot_be_saved_is_put_elsewhere(flow, disk, tmp_path, monkeypatch):
    out = tmp_path / "model"
    out.mkdir()
    disk.under, disk.full = str(out), True
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(folders.tempfile, "gettempdir", lambda: str(out))
    monkeypatch.chdir(out)
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(OSError, match=rf"No space left.*it is in {home}/tessella-model-\S+ instead"):
        saving.save_somewhere(flow, out)
    assert np.array_equal(TabularFlow.load(next(home.iterdir())).sample(5), flow.sample(5))
    disk.under = str(tmp_path)
    with pytest.raises(OSError, match=rf"it is lost, since {out}, {out}, {home} cannot be written either"):
        saving.save_somewhere(flow, out)
    assert list(out.iterdir()) == []


def test_a_full_disk_does_not_end_training(disk, tmp_path, monkeypatch):
    config = replace(NOISY, steps=60)
    whole = fit_noisy(tmp_path / "whole", config)
    record, said = RunFolder.record, []

    def filling(self, step, *rest, **values):
        disk.full = step >= 20
        record(self, step, *rest, **values)

    monkeypatch.setattr(RunFolder, "record", filling)
    monkeypatch.setattr("tessella.training.folder.say", said.append)
    result = fit_noisy(tmp_path / "full", config)
    assert (result.best_step, result.best_validation, result.steps) == (whole.best_step, whole.best_validation, 60)
    assert result.unsaved == "No space left on device"
    assert len(said) == 1
    disk.full = False
    monkeypatch.undo()
    assert fit_noisy(tmp_path / "full", config).best_validation == whole.best_validation  # resumed from what was saved


HOLD = "import sys, time; from pathlib import Path; from tessella.folders import claimed\n"
HOLD += "with claimed(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"


def test_two_processes_do_not_write_into_one_folder(flow, tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    for write in (
        lambda: flow.save(tmp_path),
        lambda: fit_noisy(tmp_path),
        lambda: fit_and_report(flow, TABLE, tmp_path),
    ):
        with pytest.raises(BusyFolderError, match=f"{tmp_path}: process {holder.pid} on .* is writing there"):
            write()
    holder.kill()
    holder.wait()
    assert (tmp_path / LOCK).exists()
    flow.save(tmp_path)  # what a killed process leaves holds nobody up
    assert {file.name for file in tmp_path.iterdir()} == {saving.WEIGHTS, saving.DESCRIPTION}


def test_claims_nest_and_leave_nothing(tmp_path):
    with claimed(tmp_path / "new"), claimed(tmp_path / "new"):
        assert (tmp_path / "new" / LOCK).exists()
    assert not (tmp_path / "new").exists()


def test_checkpoints_by_time_and_where_a_run_resumes(tmp_path, monkeypatch, capsys):
    seldom = replace(NOISY, validate_every=10**6, checkpoint_every=10**6, steps=40, progress=True)
    steps = []
    save = RunFolder.save_resume
    monkeypatch.setattr(RunFolder, "save_resume", lambda *args: (steps.append(args[2].step), save(*args)))
    fit_noisy(tmp_path / "seldom", seldom)
    assert steps == [0, 40, 40]
    steps.clear()
    fit_noisy(tmp_path / "often", replace(seldom, checkpoint_seconds=0))
    assert steps == [*range(41), 40]
    capsys.readouterr()
    fit_noisy(tmp_path / "seldom", seldom)
    assert "resuming" not in capsys.readouterr().err  # it was finished
    RunFolder(tmp_path / "often").resume.unlink()
    interrupt_at(25, monkeypatch)
    assert fit_noisy(tmp_path / "often", seldom).stopped == "interrupted"
    monkeypatch.undo()
    fit_noisy(tmp_path / "often", seldom)
    assert "resuming at step 25 of 40" in capsys.readouterr().err


def interrupt_at(step: int, monkeypatch) -> None:
    update = Learner.update

    def interrupted(self, at, *rest):
        update(self, at, *rest)
        if at == step - 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Learner, "update", interrupted)


def resumable(**options) -> TabularFlow:
    return small_flow(density="autoregressive", max_steps=60, progress=True, threads=1, **options)


def fit_until_killed(checkpoints: str) -> None:
    update = Learner.update

    def deadly(self, at, *rest):
        update(self, at, *rest)
        if at == 40:
            os.kill(os.getpid(), signal.SIGKILL)

    Learner.update = deadly
    resumable().fit_resumable(TABLE, checkpoints)


def test_a_killed_fit_continues_as_if_nothing_had_been(tmp_path, capsys):
    checkpoints = tmp_path / CHECKPOINTS
    script = "import sys; from tests.edges.test_folder_writing import *; fit_until_killed(sys.argv[1])"
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run([sys.executable, "-c", script, str(checkpoints)], env={**os.environ, **paths}, check=False)
    assert child.returncode == -signal.SIGKILL
    reached = RunFolder(checkpoints).state().step
    assert 0 < reached <= 40
    flow, whole = resumable().fit_resumable(TABLE, checkpoints), resumable().fit(TABLE)
    assert f"resuming at step {reached} of 60" in capsys.readouterr().err
    assert np.array_equal(flow.score_samples(TABLE), whole.score_samples(TABLE))
    assert [line["step"] for line in flow.history_] == [line["step"] for line in whole.history_]
    resumable(learning_rate=1e-4).fit_resumable(TABLE, checkpoints)  # other settings begin anew
    resumable().fit_resumable(TABLE[:50], checkpoints)  # and so do other rows
    assert "resuming" not in capsys.readouterr().err
