"""Run folders of `tessella train`: edits are refused, a model that cannot be written is put elsewhere."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.edges.folders_for_tests import copied

from tessella.cli.train import TrainCommand, _train
from tessella.data import load_table
from tessella.folders import BrokenFolderError, BusyFolderError
from tessella.models import TableConfig, TransformerConfig
from tessella.runs import DataConfig, RunConfig, load_run, train_run
from tessella.training import RunFolder, TrainingConfig

TRAINING = TrainingConfig(steps=2, batch_size=8, validation_rows=20, progress=False, accelerator="cpu")
NURSERY = load_table("nursery")


def train(folder: Path, training: TrainingConfig = TRAINING) -> None:
    train_run(RunConfig(DataConfig("nursery"), TransformerConfig(8, 1), training), NURSERY, folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    train(folder)
    return folder


EDITS: list[tuple[str, Any, str]] = [
    ("run.model.layers", 10**7, "layers: got 10000000"),
    ("run.model.width", 10**6, "width: got 1000000"),
    ("run.model.width", "8", "width: got '8'; expected int"),
    ("run.model.kind", "magic", "got 'magic'"),
    ("run.model.dropout", None, "dropout: got None; expected float"),
    ("run.encoding", None, "expected a list of objects"),
    ("run.encoding.0.categories", [], "expected at least one"),
    ("training.steps", -1, "steps: got -1"),
    ("training", [], "expected an object"),
    ("run", None, "cannot be read"),
]


@pytest.mark.parametrize(("path", "value", "said"), EDITS, ids=lambda part: str(part)[:24])
def test_an_edited_run_is_refused(run, tmp_path, path, value, said):
    folder = copied(run, tmp_path / "edited")
    description = json.loads((folder / "config.json").read_text())
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
    inner = description
    for part in parents:
        inner = inner[part]
    inner[last] = value
    (folder / "config.json").write_text(json.dumps(description))
    with pytest.raises(BrokenFolderError) as caught:
        load_run(folder)
    assert said in str(caught.value)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_of_a_run_are_looked_at(run, tmp_path):
    assert isinstance(load_run(run).config.model, TableConfig)
    folder = copied(run, tmp_path / "edited")
    weights = load_file(folder / "model.safetensors")
    next(iter(weights.values())).view(-1)[0] = torch.nan
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(BrokenFolderError, match="NaN or infinite"):
        load_run(folder)
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")
    with pytest.raises(BrokenFolderError, match="got a pipe; expected a file"):
        load_run(folder)


def test_a_folder_that_cannot_be_written_is_known_before_the_start(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(TransformerConfig, "start", lambda *_: pytest.fail("it was started"))
    with pytest.raises(OSError, match="cannot be made"):
        train(tmp_path / "file" / "run")


def test_a_busy_folder_is_refused_before_anything_is_read(run, tmp_path):
    """Also one with a checkpoint, that a run could go on from."""
    folder = copied(run, tmp_path / "run")
    code = "import sys; from pathlib import Path; from tessella.folders import claimed\n"
    code += "with claimed(Path(sys.argv[1])): print('claimed', flush=True); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"claimed\n"
    with pytest.raises(BusyFolderError, match=f"process {other.pid} on .* is writing there"):
        _train(TrainCommand("no-such-table", out=folder))
    other.communicate()
    with pytest.raises(ValueError, match="no-such-table"):
        _train(TrainCommand("no-such-table", out=folder))


def test_a_run_that_cannot_be_saved_is_put_elsewhere(tmp_path, monkeypatch):
    save = RunFolder.save_model

    def failing(self, weights, state):
        save(self, weights, state)
        if state.step:
            self.unsaved, self.fault = (dict(weights), state), "No space left on device"

    monkeypatch.setattr(RunFolder, "save_model", failing)
    with pytest.raises(OSError, match=r"No space left on device\); it is in .* instead") as caught:
        train(tmp_path / "run", replace(TRAINING, steps=30, warmup_steps=0, learning_rate=1e-2, ema_decay=0.5))
    elsewhere = Path(str(caught.value).partition("it is in ")[2].partition(" instead")[0])
    assert load_run(elsewhere).model.sample(2)[0].shape == (2, 8)


def test_a_torn_resume_state_is_refused(run, tmp_path):
    folder = copied(run, tmp_path / "edited")
    content = (folder / "resume.safetensors").read_bytes()
    (folder / "resume.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(BrokenFolderError, match=r"resume\.safetensors: cannot be read"):
        train(folder)
