"""Several processes train as one does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.training import two_processes

from tessella.training import RunFolder


def test_two_processes_train_as_one_with_the_same_global_batch(tmp_path: Path):
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    script = [sys.executable, two_processes.__file__, str(tmp_path / "two"), "2"]
    done = subprocess.run(script, env=environment, check=True, timeout=120, capture_output=True, text=True)
    assert done.stdout.count("satisfied") == 2, done.stderr
    two_processes.train(tmp_path / "one", devices=1)

    one, two = RunFolder(tmp_path / "one").read_metrics(), RunFolder(tmp_path / "two").read_metrics()
    for alone, together in zip(one, two, strict=True):
        assert alone.keys() == together.keys()
        for name in alone.keys() - {"seconds"}:
            assert together[name] == pytest.approx(alone[name], rel=1e-9)
    expected, actual = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, tensor in expected.items():
        torch.testing.assert_close(actual[name], tensor, rtol=1e-9, atol=1e-12)
