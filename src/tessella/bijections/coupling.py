"""Coupling: some coordinates, or some variables, move by increasing maps given the others."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tessella.bijections.base import Bijection, sum_trailing
from tessella.bijections.elementwise import AFFINE, Elementwise

NUMBERING = 0  # seed by which variables are numbered


class Coupling(Bijection):
    """y_keep = x_keep,  y_move = f(x_move; c),  c = net(x_keep, context), f increasing;  ladj = sum log f'.

    Args:
        size: size of the last dimension.
        keep: indices along it that stay and are shown to the network; the others move.
        net: (x_keep, context) -> (*batch, f.coefficients * moved).
        event_dim: 1 for flat vectors, 2 when points are (N, D) tokens and the network lets them see each other.
        elementwise: f, the affine map x exp(s) + t unless given.
    """

    keep: Tensor
    move: Tensor
    order: Tensor

    def __init__(
        self, size: int, keep: Sequence[int], net: nn.Module, event_dim: int = 1, elementwise: Elementwise = AFFINE
    ):
        super().__init__()
        self.event_dim, self.elementwise = event_dim, elementwise
        keep, move = list(keep), [i for i in range(size) if i not in set(keep)]
        self.register_buffer("keep", torch.tensor(keep, dtype=torch.int64), persistent=False)
        self.register_buffer("move", torch.tensor(move, dtype=torch.int64), persistent=False)
        self.register_buffer("order", torch.tensor([*keep, *move]).argsort(), persistent=False)
        self.net = net

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        kept, moved, coefficients = self._parts(x, context)
        moved, ladj = self.elementwise.forward(moved, coefficients)
        return self._join(kept, moved), sum_trailing(ladj, self.event_dim)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        kept, moved, coefficients = self._parts(y, context)
        moved, ladj = self.elementwise.inverse(moved, coefficients)
        return self._join(kept, moved), sum_trailing(ladj, self.event_dim)

    def _parts(self, x: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        kept, moved = x.index_select(-1, self.keep), x.index_select(-1, self.move)
        return kept, moved, self.net(kept, context).unflatten(-1, (self.elementwise.coefficients, -1))

    def _join(self, kept: Tensor, moved: Tensor) -> Tensor:
        return torch.cat([kept, moved], -1).index_select(-1, self.order)


def partitions(size: int) -> list[list[int]]:
    """The index sets that coupling layers keep in turn: first half, second half, odd, even; none keeps everything.

    >>> partitions(4)
    [[0, 1], [2, 3], [1, 3], [0, 2]]
    """
    half = size // 2
    sets = [list(range(half)), list(range(half, size)), list(range(1, size, 2)), list(range(0, size, 2))]
    return [keep for keep in sets if len(keep) < size]


class VariableCoupling(Bijection):
    """Coordinates C of variables V move given all else: y_VC = f(x_VC; c), c = net(x, 0 in place of x_VC)_V.

    Where `Coupling` over tokens moves some coordinates of every variable, this moves some variables: their places can
    depend on the categories of all others. The network is shown the variables that move first, so that all parts are
    slices, which compilers like better than gathers.

    Args:
        variables: V, some of 0, ..., N - 1.
        coordinates: C, a range within 0, ..., D - 1.
        net: (points (*batch, N, D) with 0 in place of what moves, context, |V|) -> coefficients of the first |V|
            variables, (*batch, |V|, f.coefficients * |C|).
        number: N.
        elementwise: f, the affine map x exp(s) + t unless given.
    """

    event_dim = 2
    order: Tensor
    inverse_order: Tensor

    def __init__(
        self,
        variables: Sequence[int],
        coordinates: range,
        net: nn.Module,
        number: int,
        elementwise: Elementwise = AFFINE,
    ):
        super().__init__()
        order = torch.tensor([*variables, *sorted({*range(number)} - {*variables})])
        self.register_buffer("order", order, persistent=False)
        self.register_buffer("inverse_order", order.argsort(), persistent=False)
        self.moving, self.coordinates = len(variables), coordinates
        self.net, self.elementwise = net, elementwise

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._moved(x, context, self.elementwise.forward)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._moved(y, context, self.elementwise.inverse)

    def _moved(
        self, x: Tensor, context: Tensor | None, move: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        x = x.index_select(-2, self.order)
        context = None if context is None else context.index_select(-2, self.order)
        moving = x[..., : self.moving, self.coordinates.start : self.coordinates.stop]
        coefficients = self.net(self._with(x, torch.zeros_like(moving)), context, first=self.moving)
        moved, ladj = move(moving, coefficients.unflatten(-1, (self.elementwise.coefficients, -1)))
        return self._with(x, moved).index_select(-2, self.inverse_order), sum_trailing(ladj, 2)

    def _with(self, x: Tensor, moved: Tensor) -> Tensor:
        """x with these values where it moves."""
        first, others = x[..., : self.moving, :], x[..., self.moving :, :]
        parts = [first[..., : self.coordinates.start], moved, first[..., self.coordinates.stop :]]
        return torch.cat([torch.cat(parts, -1), others], -2)


def variable_halves(variables: int, layer: int) -> list[bool]:
    """Which variables stay in a layer: those with a digit 0, then those with a 1, digit by digit of their number.

    Any two variables are on different sides in some layer. They are numbered at random, once for all, since neighbours
    in a table belong together: a rank that should move given its suit and another card must not always move with the
    suit, or stay with it.

    >>> [variable_halves(4, layer) for layer in range(3)]
    [[True, False, False, True], [False, True, True, False], [True, True, False, False]]
    """
    digits = max(1, (variables - 1).bit_length())
    digit = layer // 2 % digits
    numbers = shuffled(variables, NUMBERING)
    return [(number >> digit) % 2 == layer % 2 for number in numbers]


def variable_groups(variables: int, groups: int, sweep: int) -> list[list[int]]:
    """Which variables move together, in turn: groups of about the same size, others in every sweep.

    >>> variable_groups(5, 2, sweep=0)
    [[1, 2, 4], [0, 3]]
    """
    order = shuffled(variables, NUMBERING + sweep)
    return [sorted(order[first::groups]) for first in range(groups)]


def shuffled(variables: int, seed: int) -> list[int]:
    """0, ..., N - 1 in an order that is the same for every model."""
    return torch.randperm(variables, generator=torch.Generator().manual_seed(seed)).tolist()
