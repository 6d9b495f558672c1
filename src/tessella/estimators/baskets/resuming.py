"""The state of counting in a file, from which the same fit of the same baskets continues."""

import json
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from torch import Tensor

from tessella.baselines.sets import BasketMixture
from tessella.data import PaddedSets, SetShape
from tessella.folders import interpreting, read_about, read_tensors, tensor_bytes, write_whole

FILE = "counting.safetensors"
SECONDS = 30.0  # from one writing to the next


@dataclass(frozen=True)
class Past:
    """What was done already.

    Attributes:
        history: of each round.
        now, best: the model of the last round, and the best one.
        validation, prior: of the best.
    """

    history: list[dict[str, Any]]
    now: BasketMixture
    best: BasketMixture
    validation: float
    prior: float


class Checkpoint:
    """A file in a folder, or nowhere.

    Args:
        folder: where; None: nothing is kept.
        asked: what makes a fit the same, in JSON's types.
        sets: baskets that it learns from and that it is judged by.
    """

    def __init__(self, folder: Path | None, asked: dict[str, Any], *sets: PaddedSets):
        self.path = None if folder is None else folder / FILE
        self.about = "" if folder is None else json.dumps({**asked, "sets": [_digest(one) for one in sets]})
        self._written = time.monotonic()

    def read(self, shape: SetShape) -> Past | None:
        """What this fit has done; None where the file is of another one, or there is none."""
        if self.path is None or not self.path.exists():
            return None
        said = read_about(self.path)
        if said.get("about") != self.about:
            return None
        tensors = read_tensors(self.path)
        with interpreting(self.path):
            now, best = (_model(shape, tensors, which) for which in ("now", "best"))
            state = json.loads(said["state"])
            return Past(state["history"], now, best, float(state["validation"]), float(state["prior"]))

    def write(self, past: Past, last: bool = False) -> None:
        """Keep the state, if it is time, or the last one."""
        if self.path is None or not (last or time.monotonic() - self._written > SECONDS):
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        tensors = {f"now.{name}": weight for name, weight in past.now.state_dict().items()}
        tensors |= {f"best.{name}": weight for name, weight in past.best.state_dict().items()}
        state = {"history": past.history, "validation": past.validation, "prior": past.prior}
        write_whole({self.path: tensor_bytes(tensors, {"about": self.about, "state": json.dumps(state)})})
        self._written = time.monotonic()


def _model(shape: SetShape, tensors: dict[str, Tensor], which: str) -> BasketMixture:
    model = BasketMixture(shape, len(tensors[f"{which}.log_kind"]))
    model.load_state_dict({name: tensors[f"{which}.{name}"] for name in model.state_dict()})
    return model


def _digest(sets: PaddedSets) -> str:
    """Of all baskets, in their order."""
    found = sha256(sets.offsets.cpu().numpy().tobytes())
    found.update(sets.items.cpu().numpy().tobytes())
    return found.hexdigest()
