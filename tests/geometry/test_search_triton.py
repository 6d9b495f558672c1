"""The Triton kernels keep their laws: under Triton's interpreter here, and on a GPU where there is one.

The interpreter must be asked for before Triton is imported, which other tests may have done: hence a new process.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from tessella.geometry import kernels

LAWS = Path(__file__).with_name("kernel_laws.py")
GPU = torch.cuda.is_available()

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, which is not installed")


def keeps_laws(laws: Path, **environment: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::RuntimeWarning",
        str(laws),
    ]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.skipif(GPU, reason="the kernels themselves are tested on a GPU")
def test_kernels_under_the_interpreter():
    keeps_laws(LAWS, TRITON_INTERPRET="1")


@pytest.mark.skipif(not GPU, reason="needs a GPU")
def test_kernels_on_a_gpu():
    keeps_laws(LAWS)


def test_kernels_run_where_they_pay_unless_somebody_decides(monkeypatch):
    points, few = torch.zeros(1), kernels.MANY - 1
    assert not kernels.wanted(points, kernels.MANY)  # a CPU has none
    monkeypatch.setattr(kernels, "DEVICES", {"cpu"})
    assert kernels.wanted(points, few)
    with kernels.triton(False):
        assert not kernels.wanted(points, kernels.MANY)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert kernels.wanted(points, kernels.MANY)
    assert not kernels.wanted(points, few)
    with kernels.triton(True):
        assert kernels.wanted(points, few)
