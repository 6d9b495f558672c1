"""Table 3 of the paper: one method on one text, as one JSON record.

tessella reproduce text --data text8 --dequantizer exact --minutes 9
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from math import log
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tessella import records
from tessella.configs import changed, to_json
from tessella.data import TEXTS, Text
from tessella.evaluation import evaluate, sandwich_audit
from tessella.models import DisjointText, SemiDiscrete, TextModel, characters
from tessella.models.tables import number_of_parameters
from tessella.paper.effort import Effort, curve, matmul_precision
from tessella.paper.texts.maps import character_map
from tessella.paper.texts.recipes import STRIDES, Dequantization, Network, Preset, TextRecipe, recipe_for
from tessella.runs import TextData, TextRun, TextRunConfig, train_text
from tessella.training.randomness import derived_seed

VALIDATIONS = 10  # of a run: each may write half a gigabyte
SANDWICH_WINDOWS = 64
TIGHT_WINDOWS, TIGHT_DRAWS = 8, 8
GENERATED = {"cuda": (1024, 256), "cpu": (16, 64)}  # rows side by side, characters of each
SHOWN = 500  # characters of the sample in a record
SMALL_LENGTH = 64  # of windows, of the preset for a CPU
OWN_LENGTH = 256  # of windows of a text of one's own


@dataclass(frozen=True)
class TextTask(Effort):
    """One cell of the table: a method, the text, and how long."""

    data: str
    """A text, or a file."""
    dequantizer: Dequantization
    dim: int = 8
    network: Network = "transformer"
    preset: Preset = "best"
    length: int = 0
    """Characters of a window; 0: as published, 256 for text8 and 320 for enwik8."""
    samples: int = 20
    test_windows: int = 8_000
    """Longer tests are evaluated on their first so many windows; 0: on all."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe to change, {"model.network.layers": 12}."""

    @property
    def name(self) -> str:
        """What the record's file is called."""
        dim = f"d{self.dim}" if self.dequantizer == "voronoi" else ""
        network = self.network if self.network != "transformer" else ""
        parts = [Path(self.data).stem, self.dequantizer, dim, network, self.preset if self.preset != "best" else ""]
        return "-".join(filter(None, [*parts, f"seed{self.seed}"]))

    @property
    def windows(self) -> TextData:
        """Of the text."""
        published = TEXTS[self.data].length if self.data in TEXTS else OWN_LENGTH
        length = self.length or (SMALL_LENGTH if self.preset == "small" else published)
        return TextData(self.data, length, max(1, length // STRIDES))


def recipe_of(task: TextTask) -> TextRecipe:
    """The recipe of the method, with what the task asks for."""
    recipe = recipe_for(task.dequantizer, task.dim, task.network, task.preset)
    return changed(replace(recipe, training=task.applied(recipe.training)), task.changes)


def run_text(task: TextTask, folder: Path) -> dict[str, Any]:
    """Train, evaluate, draw; the record, in bits per character."""
    data, recipe = task.windows, recipe_of(task)
    text = data.load()
    with matmul_precision(task.precision):
        run, fitted = train_text(
            TextRunConfig(data, recipe.model, recipe.training, task.preset), text, folder, VALIDATIONS
        )
    torch.cuda.empty_cache()  # of training; other runs on the GPU may need it
    per_character = 1 / (data.length * log(2))
    seen = fitted.steps * run.config.training.batch_size * data.length
    with matmul_precision("highest"):
        torch.manual_seed(derived_seed(task.seed, "test"))
        measured = _evaluated(run, text, task)
        drawn = _generated(run)
    return {
        "data": text.name,
        "partial": text.partial,
        "method": task.dequantizer,
        "dim": task.dim if task.dequantizer in ("voronoi", "exact") else None,
        "network": task.network,
        "preset": task.preset,
        "length": data.length,
        "parameters": number_of_parameters(run.model),
        "steps": fitted.steps,
        "seconds": round(fitted.seconds, 3),
        "steps_per_second": round(fitted.steps / fitted.seconds, 3),
        "characters_seen": seen,
        "characters_per_second": round(seen / fitted.seconds),
        "stopped": fitted.stopped,
        "initial_bpc": fitted.initial_validation * per_character,
        "best_step": fitted.best_step,
        "validation_bpc": fitted.best_validation * per_character,
        "curve": [[seconds, value * per_character] for seconds, value in curve(folder)],
        **measured,
        **drawn,
        "characters": character_map(run, text),
        "matmul_precision": {"training": task.precision, "evaluation": "highest"},
        "changes": dict(task.changes),
        "model": to_json(run.config.model),
        "training": to_json(run.config.training),
        **records.provenance(task.seed),
    }


def _evaluated(run: TextRun, text: Text, task: TextTask) -> dict[str, Any]:
    """Bits per character of the first test windows, which do not overlap; nothing before a window is known in it."""
    windows = text.windows("test", run.config.data.length)
    number = min(task.test_windows or len(windows), len(windows))
    (batch,) = windows.to(run.device).batch(torch.arange(number))
    result = evaluate(run.model, (batch.long(),), task.samples)
    unit = run.config.data.length * log(2)
    found: dict[str, Any] = {
        "exact": run.model.exact,
        "bpc": result.iw_nll / unit,
        "elbo_bpc": result.elbo_nll / unit,
        "stderr": result.stderr / unit,
        "gap_bpc": result.gap / unit,
        "iw_samples": result.iw_samples,
        "test_windows": number,
        "test_windows_available": len(windows),
        "evaluation_seconds": round(result.seconds, 1),
        **count_entropies(text, batch.cpu()),
    }
    if isinstance(run.model, SemiDiscrete):
        found["sandwich"] = asdict(sandwich_audit(run.model, min(SANDWICH_WINDOWS, number), task.samples))
    if isinstance(run.model, DisjointText):
        found["tight"] = tightness(run.model, batch[:TIGHT_WINDOWS])
    return found


def tightness(model: DisjointText, windows: Tensor) -> dict[str, float]:
    """How far log-weights of different draws are from each other, and from the exact value, nats per window at most."""
    weights = model.log_weights(windows, TIGHT_DRAWS)
    with torch.no_grad():
        exact = model.log_prob(windows)
    return {
        "spread": float((weights.amax(0) - weights.amin(0)).max()),
        "from_exact": float((weights - exact).abs().max()),
        "draws": TIGHT_DRAWS,
        "windows": len(windows),
    }


def count_entropies(text: Text, windows: Tensor) -> dict[str, float]:
    """Bits per character of windows (n, T) by counting characters, or pairs of them, in the training part."""
    number, codes = len(text.alphabet), text.train.long()
    single = torch.bincount(codes, minlength=number).double() + 0.5
    pairs = torch.bincount(codes[:-1] * number + codes[1:], minlength=number**2).view(number, number).double()
    one = (single / single.sum()).log2()
    pairs = pairs + (single / single.sum())  # a pair that was never seen is as likely as its second character
    two = (pairs / pairs.sum(1, keepdim=True)).log2()
    rows = windows.long()
    unigram = -one[rows].mean()
    bigram = -(one[rows[:, :1]].sum() + two[rows[:, :-1], rows[:, 1:]].sum()) / rows.numel()
    return {"unigram_bpc": float(unigram), "bigram_bpc": float(bigram)}


def _generated(run: TextRun) -> dict[str, Any]:
    """A text that the model draws, and how fast it draws many side by side, a character at a time."""
    rows, number = GENERATED[run.device.type]
    nothing = torch.zeros(0, dtype=torch.int64)
    stream = characters(run.model, nothing, rows)
    list(islice(stream, 8))  # libraries warm up
    _finish(run.model)
    began = time.perf_counter()
    list(islice(stream, number))
    _finish(run.model)
    seconds = time.perf_counter() - began
    one = torch.cat(list(islice(characters(run.model, nothing), SHOWN)))
    return {
        "sample": run.alphabet.decode(one).decode("utf-8", "replace"),
        "generation": {
            "rows": rows,
            "characters": rows * number,
            "seconds": round(seconds, 3),
            "per_second": round(rows * number / seconds),
        },
    }


def _finish(model: TextModel) -> None:
    if next(model.parameters()).is_cuda:
        torch.cuda.synchronize()
