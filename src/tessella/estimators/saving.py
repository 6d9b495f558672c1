"""An estimator on disk: `model.safetensors` and `estimator.json`. Reading them executes nothing, and believes nothing.

Both are written whole, the description last, and it knows the weights' checksum: a save that was killed half-way, or
two folders mixed up, are noticed. Folders that were saved before there was a checksum are read without.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, Self, get_type_hints

from torch import Tensor, nn

from tessella.configs import checked
from tessella.estimators import legacy
from tessella.estimators.learning import Device, check_device, to_device
from tessella.folders import (
    LARGEST_TENSORS,
    BrokenFolderError,
    claimed,
    interpreting,
    put_elsewhere,
    read_file,
    read_json,
    tensor_bytes,
    tensors_of,
    write_whole,
)
from tessella.version import __version__

FORMAT = 3
WEIGHTS, DESCRIPTION = "model.safetensors", "estimator.json"


class Saved(Protocol):
    """What can be saved."""

    def save(self, folder: Path | str) -> None:
        """Into a folder."""
        ...


class Loadable(ABC):
    """An estimator that can become what was saved."""

    @classmethod
    def load(cls, folder: Path | str, device: Device = "auto") -> Self:
        """The estimator that `save` wrote, on a device of this machine; nothing in the folder is executed."""
        check_device(device)
        said, weights = read(Path(folder), cls.__name__)
        with interpreting(Path(folder) / DESCRIPTION):
            estimator = cls(**{**parameters(cls, said["params"]), "device": device})
            model = estimator._restore(said, weights)
        to_device(model, device)
        return estimator

    @abstractmethod
    def _restore(self, said: Mapping[str, Any], weights: Mapping[str, Tensor]) -> nn.Module:
        """Become what the description says, with these weights, if that is possible; the model."""


def write(folder: Path, estimator: Any, description: dict[str, Any], model: nn.Module) -> None:
    """Write the weights, then the description that makes them readable: settings, version, and what else is given."""
    weights = tensor_bytes(model.state_dict())
    params = {name: dict(v) if isinstance(v, Mapping) else v for name, v in estimator.get_params().items()}
    if not isinstance(params["random_state"], int):
        params["random_state"] = None  # a generator is no setting; `seed_` is what it gave
    said = {"format": FORMAT, "estimator": type(estimator).__name__, "tessella": __version__, "params": params}
    said |= {**description, "weights": sha256(weights).hexdigest()}
    text = json.dumps(said, indent=1) + "\n"
    with claimed(folder, room=len(weights) + len(text)):
        write_whole({folder / WEIGHTS: weights, folder / DESCRIPTION: text.encode()})


def save_somewhere(estimator: Saved, folder: Path) -> None:
    """Save into the folder; where that fails, into another one, and the error says which."""
    try:
        estimator.save(folder)
    except OSError as error:
        why = f"{folder}: the model cannot be written ({error.strerror})" if error.strerror else f"the model: {error}"
        raise OSError(f"{why}; {put_elsewhere(estimator.save, 'tessella-model-')}") from error


def read(folder: Path, estimator: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Description and weights of such an estimator, as this version would have written them."""
    path, file = folder / DESCRIPTION, folder / WEIGHTS
    if not path.exists():
        raise FileNotFoundError(f"{folder}: no {DESCRIPTION} there; expected a folder that {estimator}.save wrote")
    description = read_json(path)
    _check_format(path, description.get("format"), description.get("tessella", "unknown"))
    if (there := description.get("estimator")) != estimator:
        raise BrokenFolderError(f"{path}: got a {there!s:.80}; expected a {estimator}, use {there!s:.80}.load")
    if not file.exists():
        raise FileNotFoundError(f"{folder}: no {WEIGHTS} there; expected a folder that {estimator}.save wrote")
    content = read_file(file, LARGEST_TENSORS)
    if (expected := description.get("weights")) is not None and sha256(content).hexdigest() != expected:
        raise BrokenFolderError(
            f"{file}: got other weights than those that {DESCRIPTION} was written with; expected both of one save"
        )
    with interpreting(path):
        return legacy.upgraded(description, tensors_of(file, content))


def parameters(estimator: type, said: Any) -> dict[str, Any]:
    """The settings of an estimator that a description says, each of the type that the estimator takes."""
    hints = get_type_hints(estimator.__init__) | {"random_state": int | None}  # type: ignore[misc]  # of a class
    if unknown := sorted(set(said) - set(hints)):
        raise ValueError(f"params: got {', '.join(unknown)}; expected {', '.join(hints)}")
    return {name: checked(hints[name], value, name) for name, value in said.items()}


def fitted(hints: Mapping[str, Any], said: Any) -> dict[str, Any]:
    """What an estimator learned about itself, each of its type; counts are not negative."""
    found = {name: checked(hint, said[name], name) for name, hint in hints.items()}
    for name, value in found.items():
        if type(value) is int and value < 0:
            raise ValueError(f"{name}: got {value}; expected at least 0")
    return found


def _check_format(path: Path, found: Any, version: Any) -> None:
    if type(found) is int and found in (legacy.FORMAT, FORMAT):
        return
    newer = isinstance(found, int) and found > FORMAT
    advice = "load it with that version or a later one" if newer else "fit the model again with this version"
    raise BrokenFolderError(
        f"{path}: got format {found!r:.80}, which tessella {version!s:.80} wrote; this is tessella {__version__}, "
        f"which reads formats {legacy.FORMAT} and {FORMAT}: {advice}"
    )
