"""A run on a text: data + model + training -> run folder, and back."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tessella.configs import from_json, to_json
from tessella.data import TEXTS, Alphabet, Text, load_text, text_of_file
from tessella.folders import BrokenFolderError, interpreting, read_json, read_tensors
from tessella.models import CausalText, SoftmaxTextConfig, TextConfig, TextModel, TextShape
from tessella.models.restoring import restored
from tessella.training import FitResult, RunFolder, TrainingConfig, fit
from tessella.training.budget import within_budget

PLANNED = ("steps", "warmup_steps", "validate_every", "checkpoint_every", "time_budget")


@dataclass(frozen=True)
class TextData:
    """Which text, in which windows."""

    name: str = "text8"
    """A text (`tessella data list`), or a file."""
    length: int = 256
    """Characters of a window: what is scored together, and how far the model looks back."""
    stride: int = 64
    """From one training window to the next; windows of evaluation never overlap."""

    def load(self, alphabet: Alphabet | None = None) -> Text:
        """The text; a file in the alphabet of a model, where there is one."""
        return load_text(self.name) if self.name in TEXTS else text_of_file(self.name, alphabet)


@dataclass(frozen=True)
class TextRunConfig:
    """Everything that determines a run."""

    data: TextData = field(default_factory=TextData)
    model: TextConfig = field(default_factory=SoftmaxTextConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    preset: str = "custom"
    """Name that results carry."""


@dataclass(frozen=True)
class TextRun:
    """A trained model and what its characters mean."""

    folder: Path
    config: TextRunConfig
    alphabet: Alphabet
    model: TextModel

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @torch.no_grad()
    def surprise(self, text: bytes | str) -> Tensor:
        """-log2 P(c_t | c_1, ..., c_(t-1)) of each byte of a text, in bits, (n,); windows of the model's length.

        Each window begins half a window before what it is asked for, so that all but the first bytes have at least
        half a window before them.
        """
        if not isinstance(self.model, CausalText):
            raise ValueError(
                f"model: got one of kind {self.config.model.kind!r}, which bounds whole windows; expected an exact "
                "one, softmax or disjoint"
            )
        codes, length = self.alphabet.encode(text).to(self.device), self.config.data.length
        half = max(1, length // 2)
        bits = [-self.model.log_conditionals(codes[None, :length])[0]] if len(codes) else []
        for start in range(half, len(codes) - length + half, half):
            bits.append(-self.model.log_conditionals(codes[None, start : start + length])[0, length - half :])
        return torch.cat(bits).cpu().double() / torch.log(torch.tensor(2.0)) if bits else torch.zeros(0)


def train_text(config: TextRunConfig, text: Text, folder: Path, validations: int) -> tuple[TextRun, FitResult]:
    """Train, or continue what lies in the folder; the best averaged weights come back.

    A time budget is for everything: the start, the trial that counts the steps, compilation, and training.

    Args:
        config: of the run.
        text: its data, by the name in the config.
        folder: of the run.
        validations: evenly spread over the steps.
    """
    began = time.perf_counter()
    data, shape = config.data, TextShape(len(text.alphabet), config.data.length)
    train = text.windows("train", data.length, data.stride)
    validation = text.windows("validation", data.length)
    torch.manual_seed(config.training.seed)
    model = config.model.start(shape, text.train)
    asked = {"steps": config.training.steps, "time_budget": config.training.time_budget}
    training, pace = _planned(config.training, asked, folder), None
    if training is None:
        spent = time.perf_counter() - began
        training, pace = within_budget(
            config.training, lambda: model, train, validation, validations=validations, spent=spent
        )
    config = replace(config, training=training)
    about = {
        "kind": "text",
        "preset": config.preset,
        "asked": asked,
        "data": to_json(data),
        "model": to_json(config.model),
        "alphabet": list(text.alphabet.symbols),
        "partial": text.partial,
    }
    result = fit(model, train, validation, training, folder, about, pace=pace)
    if result.unsaved:
        raise OSError(f"{folder}: cannot be written ({result.unsaved})")
    return TextRun(folder, config, text.alphabet, model), result


def _planned(training: TrainingConfig, asked: dict[str, Any], folder: Path) -> TrainingConfig | None:
    """The plan of the run in the folder, if it was asked for the same: timing again would plan another one."""
    path = RunFolder(folder).config
    said = read_json(path) if path.exists() else {}
    if said.get("run", {}).get("asked") != asked:
        return None
    with interpreting(path):
        return replace(training, **{name: said["training"][name] for name in PLANNED})


def is_text_run(folder: Path) -> bool:
    """Whether a folder holds a run on a text."""
    path = RunFolder(folder).config
    run = read_json(path).get("run") if path.exists() else None
    return isinstance(run, dict) and run.get("kind") == "text"


def load_text_run(folder: Path, device: str = "cpu") -> TextRun:
    """The model of a run folder, in evaluation mode."""
    path = RunFolder(folder).config
    if not path.exists():
        raise FileNotFoundError(f"{folder}: no config.json there; expected a run of `tessella reproduce text`")
    said = read_json(path)
    with interpreting(path):
        if said["run"].get("kind") != "text":
            raise BrokenFolderError(f"{path}: got a run on a table; expected one of `tessella reproduce text`")
        config = TextRunConfig(
            data=from_json(TextData, said["run"]["data"]),
            model=from_json(TextConfig, said["run"]["model"]),  # type: ignore[type-abstract]  # a family is meant
            training=from_json(TrainingConfig, said["training"]),
            preset=said["run"]["preset"],
        )
        alphabet = Alphabet(bytes(said["run"]["alphabet"]))
        shape = TextShape(len(alphabet), config.data.length)
        weights = read_tensors(RunFolder(folder).model)
        model = restored(lambda: config.model.build(shape), said["run"]["model"], weights)
    return TextRun(folder, config, alphabet, model.to(device).eval())
