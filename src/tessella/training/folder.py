"""The run folder. Its files are JSON and safetensors: reading them executes nothing.

| file | holds | written |
|---|---|---|
| `config.json` | training config, versions, seed, shapes of the data, what the caller says | at the start |
| `metrics.jsonl` | an object a line: step, seconds, and loss or validation or both (null = not finite) | appended |
| `model.safetensors` | the averaged weights of the best validation | at each improvement, after the resume state |
| `resume.safetensors` | weights, averages, moments, noise; the `CheckpointState` as JSON in its metadata | see `fit` |

All but the metrics are replaced as a whole. The resume state is the truth: it knows how long `metrics.jsonl` was, and
where an improvement was its last act, the model can be written again from its averages.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

# Differences that change neither the numbers of a run nor their order; threads, where somebody asks for others, change
# how sums are rounded.
_FREE = {
    "tessella",
    "torch",
    *(f"training.{name}" for name in ("time_budget", "checkpoint_every", "compile", "progress", "threads")),
}


@dataclass
class CheckpointState:
    """Where a run stands after `step` updates."""

    step: int = 0
    best_step: int = 0
    best_validation: float = math.inf
    initial_validation: float = math.inf
    """Before the first update."""
    stale: int = 0
    """Validations since the best one."""
    validated: int = -1
    """Step of the last validation."""
    seconds: float = 0.0
    metrics_bytes: int = 0
    threads: int = 0
    """On a CPU; 0 before they were chosen, and where there is nothing to choose."""
    pace: float = 0.0
    """Seconds an update took when they were chosen; 0 where that was not measured."""
    eager_because: str = ""
    """Why updates are not replayed as a CUDA graph, where that was wanted."""


class RunFolder:
    """One run on disk.

    Args:
        path: the folder, made when the run begins.
        writes: whether this process is the one that writes; all others only read.
    """

    def __init__(self, path: Path | str, writes: bool = True):
        self.path, self.writes = Path(path), writes
        self.config, self.metrics = self.path / "config.json", self.path / "metrics.jsonl"
        self.model, self.resume = self.path / "model.safetensors", self.path / "resume.safetensors"

    def check_same(self, description: Mapping[str, Any], elsewhere: bool = False) -> None:
        """The folder is new, or belongs to the run so described; `elsewhere`, it may have run on another device."""
        if not self.config.exists():
            return
        here, asked = _flat(_of_today(json.loads(self.config.read_text()))), _flat(description)
        compared = {*here, *asked} - _FREE - ({"training.accelerator"} if elsewhere else set())
        different = [name for name in sorted(compared) if here.get(name) != asked.get(name)]
        if different:
            lines = "".join(
                f"\n  {name}: {here.get(name)!r} there, {asked.get(name)!r} asked for" for name in different
            )
            raise ValueError(
                f"folder: {self.path} holds a run with another config:{lines}\n"
                "Take another folder, ask for the same config to continue that run, or pass resume=False to replace it"
            )

    def state(self) -> CheckpointState | None:
        """The last checkpoint's, or None if there is none yet."""
        if not self.resume.exists():
            return None
        metadata = _metadata(self.resume)
        return CheckpointState(**json.loads(metadata.get("state") or metadata["standing"]))  # its first name

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of the resume state, on the CPU."""
        return load_file(self.resume)

    def read_metrics(self) -> list[dict[str, Any]]:
        """All complete lines of `metrics.jsonl`."""
        complete = self.metrics.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in complete.splitlines()]

    def begin(self, description: Mapping[str, Any], state: CheckpointState | None) -> None:
        """Make the folder ready for a new run, or for one to be continued: what was measured later is forgotten."""
        if not self.writes:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        if state is None:
            for file in (self.resume, self.model, self.metrics):
                file.unlink(missing_ok=True)
            self.metrics.touch()
        else:
            os.truncate(self.metrics, state.metrics_bytes)
        with _replacing(self.config) as path:
            path.write_text(json.dumps(description, indent=2) + "\n")

    def record(self, step: int, seconds: float, **values: float) -> None:
        """Append one line to `metrics.jsonl`, in a single write."""
        if not self.writes:
            return
        measured = {name: value if math.isfinite(value) else None for name, value in values.items()}
        line = json.dumps({"step": step, "seconds": round(seconds, 3), **measured})
        with open(self.metrics, "ab", buffering=0) as file:
            file.write(line.encode() + b"\n")

    def save_resume(self, tensors: Mapping[str, Tensor], state: CheckpointState) -> None:
        """Replace the resume state."""
        if not self.writes:
            return
        with open(self.metrics, "rb") as file:
            os.fsync(file.fileno())
            state.metrics_bytes = file.seek(0, os.SEEK_END)
        with _replacing(self.resume) as path:
            save_file(_on_host(tensors), path, {"state": json.dumps(asdict(state))})

    def save_model(self, weights: Mapping[str, Tensor], state: CheckpointState) -> None:
        """Replace the best model."""
        if not self.writes:
            return
        about = {"step": str(state.best_step), "validation": repr(state.best_validation)}
        with _replacing(self.model) as path:
            save_file(_on_host(weights), path, about)

    def restore_model(self, state: CheckpointState) -> None:
        """Write the best model from the resume state, if a run was killed after the one and before the other."""
        if not self.writes or state.best_step != state.step:
            return
        if not self.model.exists() or _metadata(self.model)["step"] != str(state.step):
            self.save_model(under("average/", self.tensors()), state)


def load_best(model: nn.Module, folder: Path | str) -> None:
    """Give `model` the best averaged weights of the run in `folder`, wherever its parameters are."""
    model.load_state_dict(load_file(RunFolder(folder).model))


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with the prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _metadata(path: Path) -> dict[str, str]:
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata())


def _on_host(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous copies on the CPU that share no memory, which is what a safetensors file can hold."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which then takes the place of `path` in one move, even if power fails."""
    temporary = path.with_name(f".{path.name}.tmp")
    yield temporary
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _of_today(config: dict[str, Any]) -> dict[str, Any]:
    """A config as it is written now: earlier ones had the shape of a single tensor where there is a list of shapes."""
    data = {name: shapes if isinstance(shapes[0], list) else [shapes] for name, shapes in config["data"].items()}
    return {**config, "data": data}


def _flat(mapping: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for name, value in mapping.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat
