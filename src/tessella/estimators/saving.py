"""An estimator on disk: `model.safetensors` and `estimator.json`. Reading them executes nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from tessella.version import __version__

FORMAT = 2
WEIGHTS, DESCRIPTION = "model.safetensors", "estimator.json"


def write(folder: Path, estimator: Any, description: dict[str, Any], model: nn.Module) -> None:
    """Write the weights, then the description that makes them readable: settings, version, and what else is given."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / WEIGHTS)
    params = {name: dict(v) if isinstance(v, Mapping) else v for name, v in estimator.get_params().items()}
    if not isinstance(params["random_state"], int):
        params["random_state"] = None  # a generator is no setting; `seed_` is what it gave
    said = {"format": FORMAT, "estimator": type(estimator).__name__, "tessella": __version__, "params": params}
    (folder / DESCRIPTION).write_text(json.dumps(said | description, indent=1) + "\n", encoding="utf-8")


def read(folder: Path, estimator: str) -> dict[str, Any]:
    """The description in a folder, of such an estimator, in a format that this version knows."""
    path = folder / DESCRIPTION
    if not path.exists():
        raise FileNotFoundError(f"{folder}: no {DESCRIPTION} there; expected a folder that {estimator}.save wrote")
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        found = description["format"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: cannot be read ({type(error).__name__}: {error})") from error
    if found != FORMAT:
        said = f"tessella {description.get('tessella', 'unknown')} wrote it"
        advice = f"this version reads format {FORMAT}, fit the model again"
        raise ValueError(f"{path}: got format {found!r} ({said}); {advice}")
    if (there := description.get("estimator", "TabularFlow")) != estimator:  # the first to be saved did not say
        raise ValueError(f"{path}: got a {there}; expected a {estimator}, use {there}.load")
    return description


def read_weights(folder: Path, model: nn.Module) -> None:
    """Give the model the weights in a folder."""
    try:
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise ValueError(f"{folder / WEIGHTS}: does not fit {DESCRIPTION} ({error})") from error
