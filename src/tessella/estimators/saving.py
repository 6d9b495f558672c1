"""An estimator on disk: `model.safetensors` and `estimator.json`. Reading them executes nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from tessella.estimators import legacy
from tessella.version import __version__

FORMAT = 3
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


def read(folder: Path, estimator: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Description and weights of such an estimator, as this version would have written them."""
    path = folder / DESCRIPTION
    if not path.exists():
        raise FileNotFoundError(f"{folder}: no {DESCRIPTION} there; expected a folder that {estimator}.save wrote")
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        found = description["format"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: cannot be read ({type(error).__name__}: {error})") from error
    _check_format(path, found, description.get("tessella", "unknown"))
    if (there := description.get("estimator")) != estimator:
        raise ValueError(f"{path}: got a {there}; expected a {estimator}, use {there}.load")
    try:
        weights = load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{folder / WEIGHTS}: cannot be read ({error})") from error
    return legacy.upgraded(description, weights)


def give_weights(model: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Load the weights that `read` found in the folder into the model."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{folder / WEIGHTS}: does not fit {DESCRIPTION} ({error})") from error


def _check_format(path: Path, found: Any, version: str) -> None:
    if found in (legacy.FORMAT, FORMAT):
        return
    newer = isinstance(found, int) and found > FORMAT
    advice = "load it with that version or a later one" if newer else "fit the model again with this version"
    raise ValueError(
        f"{path}: got format {found!r}, which tessella {version} wrote; this is tessella {__version__}, which reads "
        f"formats {legacy.FORMAT} and {FORMAT}: {advice}"
    )
