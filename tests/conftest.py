"""Double precision and a fixed seed for every test, unless the test says otherwise."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

settings.register_profile("tessella", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("tessella")


@pytest.fixture(autouse=True)
def double_precision_and_seed() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(before)
