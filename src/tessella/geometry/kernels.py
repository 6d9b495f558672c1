"""Which program searches: plain PyTorch, or Triton's kernels on a GPU where Triton is installed and where they pay.

Both find the same (`search`, `search_triton`); the map into cells asks here, too (`bijections.cell_triton`). The
kernels are operators of PyTorch where somebody follows operations (`torch.compile`, `vmap`), plain calls elsewhere.
Nothing here has a gradient: whoever asks for a wall measures it again, with gradients, so that backward is a gather and
a scatter, not a search. docs/performance.md has the times of both.

>>> from tessella import Voronoi
>>> from tessella.geometry import kernels
>>> with kernels.triton(True):  # on a CPU, plain PyTorch none the less
...     Voronoi(torch.eye(2)).nearest(torch.tensor([[0.0, 9.0]]))
tensor([1])
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from tessella import checks
from tessella.geometry import search

DEVICES = {"cuda"} if find_spec("triton") else set()

MANY = 2**22  # pairs of points and cells, from which on a search is worth a kernel of its own in compiled code

_wanted: bool | None = None


@contextmanager
def triton(enabled: bool) -> Iterator[None]:
    """Use Triton's kernels wherever they can be used, or nowhere, for the duration of a `with` block."""
    global _wanted
    before, _wanted = _wanted, enabled
    try:
        yield
    finally:
        _wanted = before


def wanted(points: Tensor, pairs: int) -> bool:
    """Whether Triton's kernels look at so many pairs of points and cells.

    Unless somebody has decided: in eager code always; in compiled code, where a small search becomes one kernel with
    what is around it, from `MANY` on.
    """
    if points.device.type not in DEVICES:
        return False
    return (pairs >= MANY or not torch.compiler.is_compiling()) if _wanted is None else _wanted


def _programs() -> ModuleType:
    """Triton is imported where it is used."""
    from tessella.geometry import search_triton

    return search_triton


@torch.no_grad()
def active_wall(
    y: Tensor, cell: Tensor, anchors: Tensor, weights: Tensor | None = None, counts: tuple[int, ...] | None = None
) -> Tensor:
    """argmax_i n_i . y, as `search.active_wall`."""
    if wanted(y, cell.numel() * anchors.shape[-1]):
        find = _active_wall if checks.followed() else _programs().active_wall
        wall: Tensor = find(y, cell, anchors, weights)
        return wall
    return search.active_wall(y, cell, anchors, weights, counts)


@torch.no_grad()
def nearest_anchor(
    x: Tensor, anchors: Tensor, weights: Tensor | None = None, counts: tuple[int, ...] | None = None
) -> Tensor:
    """argmin_i |x - x_i|^2 - w_i, as `search.nearest_anchor`."""
    if wanted(x, len(x) * x.shape[-1] * anchors.shape[-1]):
        find = _nearest_anchor if checks.followed() else _programs().nearest_anchor
        cell: Tensor = find(x, anchors, weights)
        return cell
    return search.nearest_anchor(x, anchors, weights, counts)


def placing(x: Tensor, cells: int) -> bool:
    """Whether `nearest_placed` searches: Triton's kernels in single precision, and nobody follows operations."""
    return x.dtype == torch.float32 and wanted(x, len(x) * x.shape[-1] * cells) and not checks.followed()


def nearest_placed(x: Tensor, *parts: Tensor | None) -> Tensor:
    """argmin_i |x - x_i|^2 - w_i, from `Tessellation.parts`, whose anchors are put into their box on the way."""
    cell: Tensor = _programs().nearest_placed(x, *parts)
    return cell


@torch.library.custom_op("tessella::active_wall", mutates_args=())
def _active_wall(y: Tensor, cell: Tensor, anchors: Tensor, weights: Tensor | None) -> Tensor:
    found: Tensor = _programs().active_wall(y, cell, anchors, weights)
    return found


@torch.library.custom_op("tessella::nearest_anchor", mutates_args=())
def _nearest_anchor(x: Tensor, anchors: Tensor, weights: Tensor | None) -> Tensor:
    found: Tensor = _programs().nearest_anchor(x, anchors, weights)
    return found


@_active_wall.register_fake
def _(y: Tensor, cell: Tensor, anchors: Tensor, weights: Tensor | None) -> Tensor:
    return torch.empty_like(cell, dtype=torch.int64, memory_format=torch.contiguous_format)


@_nearest_anchor.register_fake
def _(x: Tensor, anchors: Tensor, weights: Tensor | None) -> Tensor:
    return x.new_empty((x.shape[0], x.shape[2]), dtype=torch.int64)


@_active_wall.register_vmap
def _(info: Any, dims: tuple[int | None, ...], *args: Tensor | None) -> tuple[Tensor, int]:
    found = _active_wall(*_side_by_side(info.batch_size, dims, args))
    return found.unflatten(0, (info.batch_size, -1)), 0


@_nearest_anchor.register_vmap
def _(info: Any, dims: tuple[int | None, ...], *args: Tensor | None) -> tuple[Tensor, int]:
    found = _nearest_anchor(*_side_by_side(info.batch_size, dims, args))
    return found.unflatten(0, (info.batch_size, -1)), 0


def _side_by_side(size: int, dims: tuple[int | None, ...], args: tuple[Tensor | None, ...]) -> list[Tensor | None]:
    """What vmap runs over becomes further tessellations side by side: (B, G, ...) -> (B G, ...)."""
    whole = [
        arg if arg is None else arg.expand(size, *arg.shape) if dim is None else arg.movedim(dim, 0)
        for arg, dim in zip(args, dims, strict=True)
    ]
    return [arg if arg is None else arg.flatten(0, 1) for arg in whole]
