"""The overview of a small mixed table whose names try to break out of the page."""

import copy
import dataclasses
from functools import cache
from typing import Any

import numpy as np
from tests.estimators.frames_for_tests import cell_flow, mixed_columns, pandas_frame

from tessella.estimators.overview import gather


def evil_overview() -> dict[str, Any]:
    """One's own copy of it."""
    return copy.deepcopy(_gathered())


@cache
def _gathered() -> dict[str, Any]:
    long = "<script>alert('x')</script> & a name that is much too long"
    frame = pandas_frame(mixed_columns(240)).rename(columns={"note": long})
    frame["tag"] = ['"><img src=x onerror=alert(1)>', "a\x00b", "</style></title>", "x" * 300] * 60
    flow = cell_flow().fit(frame)
    flow.parts_ = {"train": np.arange(160), "validation": np.arange(160, 200), "test": np.arange(200, 240)}
    return dataclasses.asdict(gather(flow, frame))
