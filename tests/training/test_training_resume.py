"""A run killed at any moment and resumed is, bit by bit, the run that was never killed."""

import json
import multiprocessing
import random
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.training.small_models import NOISY, fit_noisy, fit_noisy_until_killed

from tessella.training import RunFolder

# Children start from a server that has imported everything, in milliseconds instead of seconds.
CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload(["lightning_fabric", "tests.training.small_models"])


def in_child(function, *arguments) -> multiprocessing.process.BaseProcess:
    child = CHILDREN.Process(target=function, args=arguments)
    child.start()
    return child


def everything(folder: Path) -> tuple[dict, dict, list]:
    """The best model, the resume state and the metrics, without the times."""
    metrics = [{k: v for k, v in line.items() if k != "seconds"} for line in RunFolder(folder).read_metrics()]
    return load_file(folder / "model.safetensors"), load_file(folder / "resume.safetensors"), metrics


def assert_same_run(one: Path, other: Path) -> None:
    for a, b in zip(everything(one)[:2], everything(other)[:2], strict=True):
        assert a.keys() == b.keys()
        assert [name for name in a if not torch.equal(a[name], b[name])] == []
    assert everything(one)[2] == everything(other)[2]


LONG = replace(NOISY, steps=1000)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uninterrupted")
    assert in_child_until_end(fit_noisy, folder, LONG) == 0
    return folder


def test_killed_at_random_moments(tmp_path: Path, uninterrupted: Path):
    moments, reached = random.Random(), set()
    for kill in range(8):
        before = step_on_disk(tmp_path)
        child = in_child(fit_noisy, tmp_path, LONG)
        # The first two may die before they have begun; each later one gets a little further.
        while kill > 1 and step_on_disk(tmp_path) <= before and child.is_alive():
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.06))
        child.kill()
        child.join(60)
        reached.add(step_on_disk(tmp_path))
    assert len(reached) >= 5, f"killed only at steps {reached}; the run is too short for this machine"
    assert fit_noisy(tmp_path, LONG).stopped == "steps"
    assert_same_run(tmp_path, uninterrupted)


def step_on_disk(folder: Path) -> int:
    state = RunFolder(folder).state()
    return -1 if state is None else state.step


@pytest.mark.parametrize(
    ("rate", "best", "optimizer"),
    [(3e-3, 6, "adam"), (1.0, 4, "adam"), (3e-3, 6, "muon")],
    ids=["best last", "best early", "orthogonal steps"],
)
def test_killed_at_every_write(tmp_path: Path, rate: float, best: int, optimizer: str):
    config = replace(NOISY, steps=6, validate_every=2, checkpoint_every=3, log_every=1)
    config = replace(config, learning_rate=rate, optimizer=optimizer)
    assert in_child_until_end(fit_noisy, tmp_path / "whole", config) == 0
    assert RunFolder(tmp_path / "whole").state().best_step == best
    for write in range(1, 30):
        codes = [
            in_child_until_end(fit_noisy_until_killed, tmp_path / f"{write}{before}", config, write, before)
            for before in (True, False)
        ]
        if codes == [0, 0]:
            break
        for before in (True, False):
            fit_noisy(tmp_path / f"{write}{before}", config)
            assert_same_run(tmp_path / f"{write}{before}", tmp_path / "whole")
    assert 6 < write < 29, "a fresh run replaces config, resume state and model several times"


def in_child_until_end(function, *arguments) -> int | None:
    child = in_child(function, *arguments)
    child.join(60)
    return child.exitcode


def test_finished_run_returns_its_result_at_once(uninterrupted: Path, tmp_path: Path):
    folder = shutil.copytree(uninterrupted, tmp_path / "copy")
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    first, second = fit_noisy(folder, LONG), fit_noisy(folder, LONG)
    assert first == second
    assert first.steps == 1000
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == before


def test_a_finished_run_is_read_on_another_device(uninterrupted: Path, tmp_path: Path):
    """As one that a GPU trained; an unfinished one is another run there."""
    folder = shutil.copytree(uninterrupted, tmp_path / "copy")
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"accelerator": "cpu"', '"accelerator": "cuda"'))
    assert fit_noisy(folder, LONG) == fit_noisy(uninterrupted, LONG)
    with pytest.raises(ValueError, match=r"training\.accelerator: 'cuda' there, 'cpu' asked for"):
        RunFolder(folder).check_same(json.loads((uninterrupted / "config.json").read_text()))


def test_folder_holds_only_json_and_safetensors(uninterrupted: Path):
    assert {file.name for file in uninterrupted.iterdir()} == {
        "config.json",
        "metrics.jsonl",
        "model.safetensors",
        "resume.safetensors",
    }
    config = json.loads((uninterrupted / "config.json").read_text())
    assert config["run"] == {"model": "noisy"}
    assert config["training"]["batch_size"] == 16
    assert {"tessella", "torch", "seed", "data"} <= config.keys()


def test_a_run_whose_states_take_long_to_write_rests_and_ends_the_same(tmp_path: Path, monkeypatch):
    config = replace(NOISY, steps=12, validate_every=2)
    fit_noisy(tmp_path / "often", config)
    written = []
    save = RunFolder.save_resume
    monkeypatch.setattr(
        RunFolder, "save_resume", lambda self, *state: (written.append(state[1].step), save(self, *state))
    )
    monkeypatch.setattr("tessella.training.run.LONG", -1.0)
    monkeypatch.setattr("tessella.training.run.RESTS", 1e9)
    fit_noisy(tmp_path / "seldom", config)
    assert written == [0, 7, 12]  # the first, the last, and where the config asks for one
    assert_same_run(tmp_path / "often", tmp_path / "seldom")
