"""The run folder. Its files are JSON and safetensors: reading them executes nothing.

| file | holds | written |
|---|---|---|
| `config.json` | training config, versions, seed, shapes of the data, what the caller says | at the start |
| `metrics.jsonl` | an object a line: step, seconds, and loss or validation or both (null = not finite) | appended |
| `model.safetensors` | the averaged weights of the best validation | at each improvement, after the resume state |
| `resume.safetensors` | weights, averages, moments, noise; the `CheckpointState` as JSON in its metadata | see `fit` |

All but the metrics are replaced as a whole. The resume state is the truth: it knows how long `metrics.jsonl` was, and
where an improvement was its last act, the model can be written again from its averages. While a run writes, the folder
is claimed (`tessella.folders`). A disk that fills up does not end a run that has begun: what could not be written is
kept in memory, and tried again.
"""

import errno
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from tessella.folders import claimed, interpreting, read_about, read_json, read_tensors, tensor_bytes, write_whole
from tessella.progress import say

# Differences that change neither the numbers of a run nor their order; threads, where somebody asks for others, change
# how sums are rounded.
_FREE = {
    "tessella",
    "torch",
    *(
        f"training.{name}"
        for name in ("time_budget", "checkpoint_every", "checkpoint_seconds", "compile", "progress", "threads")
    ),
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
        self.fault = ""
        """Why something could not be written, the first time."""
        self.unsaved: tuple[dict[str, Tensor], CheckpointState] | None = None
        """The best weights, as long as they are not on disk."""
        self._unsaved_state: CheckpointState | None = None

    def check_same(self, description: Mapping[str, Any], elsewhere: bool = False) -> None:
        """The folder is new, or belongs to the run so described; `elsewhere`, it may have run on another device."""
        if not self.config.exists():
            return
        here, asked = _flat(_of_today(read_json(self.config))), _flat(description)
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
        if self._unsaved_state is not None:
            return self._unsaved_state
        if not self.resume.exists():
            return None
        about = read_about(self.resume)
        with interpreting(self.resume):
            return CheckpointState(**json.loads(about.get("state") or about["standing"]))  # its first name

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of the resume state, on the CPU."""
        return read_tensors(self.resume)

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
        write_whole({self.config: (json.dumps(description, indent=2) + "\n").encode()})

    def record(self, step: int, seconds: float, **values: float) -> None:
        """Append one line to `metrics.jsonl`, in a single write."""
        if not self.writes:
            return
        measured = {name: value if math.isfinite(value) else None for name, value in values.items()}
        line = json.dumps({"step": step, "seconds": round(seconds, 3), **measured}).encode() + b"\n"
        with self._enduring(step), open(self.metrics, "ab", buffering=0) as file:
            before = os.fstat(file.fileno()).st_size
            if file.write(line) != len(line):  # half a line fitted: it would spoil the next one
                file.truncate(before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.metrics))

    def save_resume(self, tensors: Mapping[str, Tensor], state: CheckpointState) -> None:
        """Replace the resume state."""
        if not self.writes:
            return
        self.save_again()
        self._unsaved_state = replace(state)
        with self._enduring(state.step):
            with open(self.metrics, "rb") as file:
                os.fsync(file.fileno())
                state.metrics_bytes = file.seek(0, os.SEEK_END)
            write_whole({self.resume: tensor_bytes(tensors, {"state": json.dumps(asdict(state))})})
            self._unsaved_state = None

    def keep_model(self, weights: Mapping[str, Tensor], state: CheckpointState) -> None:
        """Remember the best model, which is written with the next resume state: before that, as a kill loses both."""
        if self.writes:
            self.unsaved = {name: weight.clone() for name, weight in weights.items()}, replace(state)

    def save_model(self, weights: Mapping[str, Tensor], state: CheckpointState) -> None:
        """Replace the best model."""
        if not self.writes:
            return
        self.keep_model(weights, state)
        with self._enduring(state.step):
            about = {"step": str(state.best_step), "validation": repr(state.best_validation)}
            write_whole({self.model: tensor_bytes(weights, about)})
            self.unsaved = None

    @contextmanager
    def _enduring(self, step: int) -> Iterator[None]:
        """What cannot be written ends a run that is about to begin; one under way goes on, and says so once."""
        try:
            yield
        except OSError as error:
            if step == 0:
                raise
            if not self.fault:
                say(f"{self.path}: cannot be written ({error.strerror}); training goes on, and tries again later")
            self.fault = error.strerror or str(error)

    def restore_model(self, state: CheckpointState) -> None:
        """Write the best model from the resume state, if a run was killed after the one and before the other."""
        if not self.writes or state.best_step != state.step:
            return
        if not self.model.exists() or read_about(self.model)["step"] != str(state.step):
            with self.claimed():
                self.save_model(under("average/", self.tensors()), state)

    def save_again(self) -> None:
        """Write the best model, where that failed or was put off."""
        if self.unsaved is not None:
            self.save_model(*self.unsaved)

    def claimed(self) -> AbstractContextManager[None]:
        """While entered, no other run writes into the folder, if this process does: see `tessella.folders`."""
        return claimed(self.path) if self.writes else nullcontext()


def load_best(model: nn.Module, folder: "RunFolder | Path | str") -> None:
    """Give `model` the best averaged weights of the run in `folder`, wherever its parameters are."""
    run = folder if isinstance(folder, RunFolder) else RunFolder(folder)
    model.load_state_dict(read_tensors(run.model) if run.unsaved is None else run.unsaved[0])


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with the prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


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
