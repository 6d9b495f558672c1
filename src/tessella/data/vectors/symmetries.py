"""Augmentation of patches: the symmetries of the square, of patches whose mean is removed and last pixel dropped."""

from math import isqrt
from typing import Literal, Self

import torch
from torch import Tensor

from tessella.contracts import Batch, Source
from tessella.data.sources import check_indices
from tessella.data.vectors.loading import VectorTable
from tessella.data.vectors.registry import VECTORS

Symmetries = Literal["none", "left-right", "reflections", "square"]
_NUMBERS: dict[str, int] = {"none": 1, "left-right": 2, "reflections": 4, "square": 8}


def pixel_orders(symmetries: Symmetries, side: int) -> Tensor:
    """v -> (v_g(1), v_g(2), ...) for each symmetry g of a patch v, read row by row: (S, side^2), the identity first.

    Args:
        symmetries: none: the identity alone; left-right: and the mirror image; reflections: and both upside down;
            square: and all four transposed, which gives the quarter turns. Each is a group.
        side: of the patch, in pixels.

    >>> pixel_orders("left-right", 2)
    tensor([[0, 1, 2, 3],
            [1, 0, 3, 2]])
    """
    if symmetries not in _NUMBERS:
        raise ValueError(f"symmetries: got {symmetries!r}; expected one of {', '.join(_NUMBERS)}")
    grid = torch.arange(side * side).view(side, side)
    views = [view for one in (grid, grid.T) for view in (one, one.flip(1), one.flip(0), one.flip(0, 1))]
    return torch.stack([view.flatten() for view in views[: _NUMBERS[symmetries]]])


def patch_maps(symmetries: Symmetries, dim: int) -> Tensor:
    """T_g x = (v_g(1), ..., v_g(D)), v = (x, -sum x): linear maps of x, (S, D, D).

    A patch without its mean sums to 0, so x says what the dropped pixel is. T_g T_h is T_gh or T_hg, and the group is
    finite: |det T_g| = 1, and densities of x and of T_g x are in the same units.

    Args:
        symmetries: see `pixel_orders`.
        dim: D = side^2 - 1.

    >>> patch_maps("left-right", 3)[1]
    tensor([[ 0.,  1.,  0.],
            [ 1.,  0.,  0.],
            [-1., -1., -1.]])
    """
    complete = torch.cat([torch.eye(dim), -torch.ones(1, dim)])
    return complete[pixel_orders(symmetries, _side(dim))[:, :-1]]


class SymmetricPatches:
    """batch(i) = (T_g x_n,), n = i // S, g = i mod S: every patch under each of S symmetries, not copied.

    Args:
        patches: x, (n, D), D = side^2 - 1: their mean removed, their last pixel dropped.
        symmetries: see `pixel_orders`.

    >>> SymmetricPatches(torch.tensor([[1.0, 2.0, 3.0]]), "left-right").batch(torch.tensor([0, 1]))
    (tensor([[ 1.,  2.,  3.],
            [ 2.,  1., -6.]]),)
    """

    def __init__(self, patches: Tensor, symmetries: Symmetries):
        if patches.dim() != 2 or len(patches) == 0:
            raise ValueError(f"patches: got shape {tuple(patches.shape)}; expected (n, D), n >= 1")
        self.patches, self.symmetries = patches, symmetries
        self._orders = pixel_orders(symmetries, _side(patches.shape[1]))[:, :-1].to(patches.device)

    def __len__(self) -> int:
        return len(self.patches) * len(self._orders)

    def batch(self, indices: Tensor) -> Batch:
        """(x,), (B, D)."""
        check_indices(indices, len(self))
        indices = indices.to(self.patches.device)
        number = len(self._orders)
        x = self.patches.index_select(0, indices // number)
        whole = torch.cat([x, -x.sum(1, keepdim=True)], 1)
        return (whole.gather(1, self._orders.index_select(0, indices % number)),)

    def to(self, device: torch.device | str) -> Self:
        """The same patches on a device."""
        return type(self)(self.patches.to(device), self.symmetries)

    @property
    def shapes(self) -> list[list[int]]:
        """Of all patches under all symmetries, if they were copied."""
        return [[len(self), self.patches.shape[1]]]


def augmented(table: VectorTable, symmetries: Symmetries) -> Source:
    """The training rows under every symmetry; those of validation and test are scored as they are.

    Args:
        table: BSDS300, or any table if symmetries are none: numbers in a row of another have no places in an image.
        symmetries: see `pixel_orders`.
    """
    if symmetries == "none":
        return table.train
    if not VECTORS[table.name].patches:
        raise ValueError(f"symmetries: got {symmetries!r} for {table.name!r}, whose rows are no images; expected none")
    return SymmetricPatches(table.train.tensors[0], symmetries)


def _side(dim: int) -> int:
    """sqrt(D + 1)."""
    side = isqrt(dim + 1)
    if side**2 != dim + 1:
        raise ValueError(f"dim: got {dim}; expected side^2 - 1, the pixels of a square patch without the last")
    return side
