"""Sampling speed: flows that draw many columns in a pass, and the transformer, which draws one."""

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import torch

from tessella import records
from tessella.baselines import Baseline
from tessella.configs import to_json
from tessella.data import load_table
from tessella.models.tables import number_of_parameters
from tessella.paper.tables.methods import passes
from tessella.paper.tables.recipes import Method, Preset, recipe_for
from tessella.training.config import Accelerator

REPEATS = 5
METHODS: tuple[tuple[Method, Preset], ...] = (
    ("blocks", "best"),
    ("voronoi", "best"),
    ("voronoi", "blind"),
    ("voronoi", "affine"),
    ("transformer", "best"),
)


def measure_sampling(data: str, rows: Sequence[int], accelerator: Accelerator, seed: int) -> dict[str, Any]:
    """Rows per second of each method, so many at a time: the median of a few repeats in one run. The record."""
    shape = load_table(data).encoding.shape
    variables = shape.variables
    device = "cuda" if accelerator != "cpu" and torch.cuda.is_available() else "cpu"
    measured = []
    for method, preset in METHODS:
        config = recipe_for(data, method, preset).model
        torch.manual_seed(seed)
        model = config.build(shape).to(device).eval()
        if isinstance(model, Baseline):
            model.rows_at_once = max(rows)  # or the transformer would be slowed down by its care for memory
        measured.append(
            {
                "method": method,
                "preset": preset,
                "rows_per_second": [_rows_per_second(model, at_once) for at_once in rows],
                "parameters": number_of_parameters(model),
                "passes": passes(method, to_json(config), variables),
            }
        )
    return {
        "data": data,
        "variables": variables,
        "rows": list(rows),
        "repeats": REPEATS,
        "device": device,
        "note": "untrained weights; no network keeps keys and values from one pass to the next",
        "measured": measured,
        **records.provenance(seed),
    }


def _rows_per_second(model: Any, rows: int) -> float:
    return rows / median([_seconds(model, rows) for _ in range(1 + REPEATS)][1:])


def _seconds(model: Any, rows: int) -> float:
    start = time.perf_counter()
    model.sample(rows)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start
