"""Double precision, a fixed seed and one thread for every test, unless the test says otherwise."""

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

# Tests run side by side, one worker a core; threads inside the workers (and their subprocesses) would fight.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)

settings.register_profile("tessella", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("tessella")


@pytest.fixture(autouse=True)
def double_precision_and_seed() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(before)
