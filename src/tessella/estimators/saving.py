"""An estimator on disk: `model.safetensors` and `estimator.json`. Reading them executes nothing."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from tessella.models import SemiDiscrete

FORMAT = 1
WEIGHTS, DESCRIPTION = "model.safetensors", "estimator.json"


def write(folder: Path, description: dict[str, Any], model: SemiDiscrete) -> None:
    """Write the weights, then the description that makes them readable."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / WEIGHTS)
    (folder / DESCRIPTION).write_text(json.dumps({"format": FORMAT, **description}, indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> dict[str, Any]:
    """The description in a folder, of a format that this version knows."""
    path = folder / DESCRIPTION
    if not path.exists():
        raise FileNotFoundError(f"{folder}: no {DESCRIPTION} there; expected a folder that TabularFlow.save wrote")
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        found = description["format"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: cannot be read ({type(error).__name__}: {error})") from error
    if found != FORMAT:
        said = f"tessella {description.get('tessella', 'unknown')} wrote it"
        raise ValueError(f"{path}: got format {found!r} ({said}); this version reads format {FORMAT}")
    return description


def read_weights(folder: Path, model: SemiDiscrete) -> None:
    """Give the model the weights in a folder."""
    try:
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise ValueError(f"{folder / WEIGHTS}: does not fit {DESCRIPTION} ({error})") from error
