"""A model of `tessella fit`, here or in another process."""

from functools import lru_cache
from pathlib import Path
from typing import Any


class Loaded:
    """A model and the folder that it is in.

    What goes to another process is the folder's name: the model is loaded there, once, whatever it is needed for.

    Args:
        folder: of the model.
    """

    def __init__(self, folder: Path):
        from tessella.estimators import TabularFlow

        self.folder = folder
        self.flow = TabularFlow.load(folder)
        self.digest = _digest(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.folder.absolute(), self.digest)


@lru_cache(maxsize=1)
def _again(folder: Path, digest: str) -> Loaded:
    """The model that another process has."""
    from socket import gethostname

    found = Loaded(folder)
    if found.digest != digest:
        raise ValueError(
            f"{folder}: got another model on {gethostname()} than where the command was given; expected a folder that "
            "all machines see"
        )
    return found


def _digest(folder: Path) -> str:
    """Of the description, which has a digest of the weights."""
    from hashlib import sha256

    from tessella.estimators.saving import DESCRIPTION

    return sha256((folder / DESCRIPTION).read_bytes()).hexdigest()
