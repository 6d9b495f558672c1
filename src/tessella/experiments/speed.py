"""Sampling speed of the flow, which draws all variables at once, and of the transformer, which cannot."""

import time
from statistics import median
from typing import Any

import torch

from tessella import records
from tessella.experiments.run import DataConfig, load_data
from tessella.experiments.tables import Method, TableTask, recipe_of
from tessella.experiments.tables_methods import build_network
from tessella.models import SemiDiscrete
from tessella.training.config import Accelerator

REPEATS = 5
METHODS: tuple[Method, ...] = ("voronoi", "transformer")


def measure_sampling(data: str, rows: int, accelerator: Accelerator, seed: int) -> dict[str, Any]:
    """Rows per second of each method, `rows` at a time: the median of a few repeats in one run. The record."""
    table = load_data(DataConfig(data))
    device = "cuda" if accelerator != "cpu" and torch.cuda.is_available() else "cpu"
    measured = {}
    for method in METHODS:
        recipe = recipe_of(TableTask(DataConfig(data), method))
        torch.manual_seed(seed)
        model = build_network(recipe.model, table.schema.counts).to(device).eval()
        if not isinstance(model, SemiDiscrete):
            model.rows_at_once = rows  # or the transformer would be slowed down by its care for memory
        seconds = [_seconds(model, rows) for _ in range(1 + REPEATS)][1:]
        measured[method] = {
            "rows_per_second": rows / median(seconds),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "passes": 1 if isinstance(model, SemiDiscrete) else len(table.schema.counts),
        }
    return {
        "data": data,
        "variables": len(table.schema.counts),
        "rows": rows,
        "repeats": REPEATS,
        "device": device,
        "note": "untrained weights; the transformer keeps no keys and values between variables",
        "methods": measured,
        **records.provenance(seed),
    }


def _seconds(model: Any, rows: int) -> float:
    start = time.perf_counter()
    model.sample(rows)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start
