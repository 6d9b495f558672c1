"""Coupling: some coordinates, or some variables, move by increasing maps given the others."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tessella.bijections.base import Bijection, sum_trailing
from tessella.bijections.elementwise import AFFINE, Elementwise

HALVES_SEED = 0  # by which variables are numbered


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
    """Of N variables (N, D) those in K stay, the others move given them: y_j = f(x_j; c_j), c = net(x_K).

    Where `Coupling` over tokens moves some coordinates of every variable, this moves all coordinates of some: a
    variable's whole place can depend on the categories of others.

    Args:
        keep: for each variable whether it stays, (N,).
        net: (x with 0 in place of the variables that move, context) -> (*batch, N, f.coefficients * D).
        elementwise: f, the affine map x exp(s) + t unless given.
    """

    event_dim = 2
    move: Tensor

    def __init__(self, keep: Sequence[bool], net: nn.Module, elementwise: Elementwise = AFFINE):
        super().__init__()
        moves = ~torch.tensor(list(keep), dtype=torch.bool)
        self.register_buffer("move", moves[:, None], persistent=False)
        self.net, self.elementwise = net, elementwise

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._where_it_moves(x, *self.elementwise.forward(x, self._coefficients(x, context)))

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._where_it_moves(y, *self.elementwise.inverse(y, self._coefficients(y, context)))

    def _coefficients(self, x: Tensor, context: Tensor | None) -> Tensor:
        shown = torch.where(self.move, 0, x)
        coefficients: Tensor = self.net(shown, context).unflatten(-1, (self.elementwise.coefficients, -1))
        return coefficients

    def _where_it_moves(self, x: Tensor, moved: Tensor, ladj: Tensor) -> tuple[Tensor, Tensor]:
        return torch.where(self.move, moved, x), sum_trailing(torch.where(self.move, ladj, 0), 2)


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
    numbers = torch.randperm(variables, generator=torch.Generator().manual_seed(HALVES_SEED)).tolist()
    return [(number >> digit) % 2 == layer % 2 for number in numbers]
