"""Drawing one value after another: each goes through the network once."""

from collections import deque
from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.models.semidiscrete import SemiDiscrete
from tessella.nets import CausalNet


class Sequential(Protocol):
    """What can be walked through: values, characters or points, each given those before it."""

    length: int
    net: CausalNet
    first: nn.Parameter

    def embedded(self, values: Tensor) -> Tensor:
        """Values (B, n, ...) as tokens of the network, (B, n, width)."""
        ...

    def draw(self, state: Tensor, temperature: float) -> Tensor:
        """The next value of each row, given its state (B, width): (B, ...)."""
        ...


class Walk:
    """Values one after another: tell those that are known, draw the others.

    What the network made of earlier values is kept. Where it cannot hold more than the model's `length`, it begins
    again with the last half of them, as a window of the text that begins there.

    Args:
        model: whose values.
        rows: B, side by side.
    """

    def __init__(self, model: Sequential, rows: int):
        if rows < 1:
            raise ValueError(f"rows: got {rows}; expected at least 1")
        self.model, self.rows = model, rows
        self._recent: deque[Tensor] = deque(maxlen=max(1, model.length // 2))
        self._begin()

    def tell(self, values: Tensor) -> None:
        """Values that are known, (B, n, ...)."""
        for value in values.unbind(1):
            self.state()
            self._tell(value)

    def draw(self, temperature: float = 1.0) -> Tensor:
        """The next value of each row, (B, ...)."""
        value = self.model.draw(self.state(), temperature)
        self._tell(value)
        return value

    @torch.no_grad()
    def state(self) -> Tensor:
        """What is known about the next value, (B, width); once for each."""
        if self._stepped == self.model.length and not self.model.net.forgets:
            recent = list(self._recent)
            self._begin()
            for value in recent:
                self._step()
                self._token = self.model.embedded(value[:, None])[:, 0]
        return self._step()

    def _begin(self) -> None:
        self._steps, self._stepped = self.model.net.steps(self.rows, self.model.length), 0
        self._token = self.model.first.detach().expand(self.rows, -1)

    def _step(self) -> Tensor:
        self._stepped += 1
        return self._steps.step(self._token)

    @torch.no_grad()
    def _tell(self, value: Tensor) -> None:
        self._recent.append(value)
        self._token = self.model.embedded(value[:, None])[:, 0]


@torch.no_grad()
def characters(model: object, prompt: Tensor, rows: int = 1, temperature: float = 1.0) -> Iterator[Tensor]:
    """Codes of the next character of each row, (rows,), for ever; all rows begin with the prompt.

    A model that draws points through cells is told a draw of q for the prompt, which is close to, and not, a draw of
    the points that the model itself would have behind these characters.

    Args:
        model: of a text.
        prompt: codes, (n,), maybe none; of a long one the last characters count.
        rows: side by side.
        temperature: below 1 for more ordinary characters, above 1 for more varied ones.
    """
    if not temperature > 0:
        raise ValueError(f"temperature: got {temperature}; expected a positive number")
    sequence: Sequential = model.density if isinstance(model, SemiDiscrete) else model  # type: ignore[assignment]  # what is walked has steps
    told = prompt[-sequence.length :].long().to(sequence.first.device).expand(rows, -1)
    with checks.values(False):
        walk = Walk(sequence, rows)
        if isinstance(model, SemiDiscrete):
            walk.tell(model.dequantizer.dequantize(told)[0])
        else:
            walk.tell(told)
    while True:
        with checks.values(False):
            drawn = walk.draw(temperature)
            codes = model.dequantizer.quantize(drawn[:, None])[0][:, 0] if isinstance(model, SemiDiscrete) else drawn
        yield codes
