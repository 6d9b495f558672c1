"""Bijections made of bijections."""

from collections.abc import Sequence

from torch import Tensor, nn

from tessella.bijections.base import Bijection, sum_trailing, zero_ladj


class Chain(Bijection):
    """f = f_n o ... o f_1, log-determinants added. All parts see the same context.

    Parts may have different `event_dim`; the chain has the largest, and sums the others' log-determinants accordingly.
    A chain of no parts is the identity on vectors.
    """

    parts: Sequence[Bijection]

    def __init__(self, *parts: Bijection):
        super().__init__()
        self.parts = nn.ModuleList(parts)  # type: ignore[assignment]  # a ModuleList forgets the type of its parts
        self.event_dim = max((part.event_dim for part in parts), default=1)

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total = zero_ladj(x, self.event_dim)
        for part in self.parts:
            x, ladj = part.forward_and_ladj(x, context)
            total = total + sum_trailing(ladj, self.event_dim - part.event_dim)
        return x, total

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total = zero_ladj(y, self.event_dim)
        for part in reversed(self.parts):
            y, ladj = part.inverse_and_ladj(y, context)
            total = total + sum_trailing(ladj, self.event_dim - part.event_dim)
        return y, total

    def initialize(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        for part in self.parts:
            x = part.initialize(x, context)
        return x


class Invert(Bijection):
    """f^-1 as a bijection of its own."""

    def __init__(self, bijection: Bijection):
        super().__init__()
        self.bijection = bijection
        self.event_dim = bijection.event_dim

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.bijection.inverse_and_ladj(x, context)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.bijection.forward_and_ladj(y, context)
