"""The cell map in Triton keeps its laws: under Triton's interpreter here, and on a GPU where there is one."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.geometry.test_search_triton import GPU, keeps_laws

LAWS = Path(__file__).with_name("cell_kernel_laws.py")

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, which is not installed")


def test_the_cell_map_in_triton():
    keeps_laws(LAWS, **({} if GPU else {"TRITON_INTERPRET": "1"}))
