"""Sources of batches: rows of a table, sets of different sizes, windows of a long text.

All keep their tensors as they are and make batches by indexing, without a look at any value on the host.
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from tessella import checks
from tessella.contracts import Batch


class Rows:
    """batch(i) = (first[i], second[i], ...): rows of tensors that have the same number of them.

    Args:
        tensors: (n, ...) each, n >= 1.

    >>> rows = Rows(torch.tensor([[0, 1], [2, 3], [4, 5]]), torch.tensor([0.0, 0.5, 1.0]))
    >>> rows.batch(torch.tensor([2, 0]))
    (tensor([[4, 5],
            [0, 1]]), tensor([1., 0.]))
    """

    def __init__(self, *tensors: Tensor):
        if not tensors:
            raise ValueError("tensors: got none; expected at least one")
        for place, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"tensors[{place}]: got {type(tensor).__name__}; expected a tensor")
            if tensor.dim() == 0 or len(tensor) == 0:
                raise ValueError(f"tensors[{place}]: got shape {tuple(tensor.shape)}; expected at least one row")
            if len(tensor) != len(tensors[0]):
                raise ValueError(
                    f"tensors[{place}]: got {len(tensor)} rows; expected {len(tensors[0])}, as in the first"
                )
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def batch(self, indices: Tensor) -> Batch:
        """These rows of each tensor."""
        check_indices(indices, len(self))
        return tuple(tensor.index_select(0, indices.to(tensor.device)) for tensor in self.tensors)

    def to(self, device: torch.device | str) -> Self:
        """The same rows on a device."""
        return type(self)(*(tensor.to(device) for tensor in self.tensors))

    @property
    def shapes(self) -> list[list[int]]:
        """Of the tensors."""
        return [list(tensor.shape) for tensor in self.tensors]


class PaddedSets:
    """batch(i) = (items, mask), both (B, size): items[b, j] is item j of set i_b where mask[b, j], else `padding`.

    Args:
        sets: the items of each set, (n_i,); some may be empty, not all. Or the items of all sets in one tensor, (M,).
        offsets: then set i = sets[offsets[i] : offsets[i + 1]]; ascending from 0 to M, (n + 1,).
        size: columns of a batch; None: as many as the largest set has items. Sets are never cut.
        padding: what stands where there is no item.

    >>> sets = PaddedSets([torch.tensor([3, 1, 4]), torch.tensor([5])])
    >>> items, mask = sets.batch(torch.tensor([1, 0]))
    >>> items.tolist(), mask.tolist()
    ([[5, 0, 0], [3, 1, 4]], [[True, False, False], [True, True, True]])
    >>> PaddedSets(torch.tensor([3, 1, 4, 5]), torch.tensor([0, 3, 4]), size=7).shapes
    [[2, 7], [2, 7]]
    """

    def __init__(
        self,
        sets: Sequence[Tensor] | Tensor,
        offsets: Tensor | None = None,
        *,
        size: int | None = None,
        padding: float = 0,
    ):
        if isinstance(sets, Tensor):
            self.items, self.offsets = sets, _checked_offsets(sets, offsets)
        elif offsets is None:
            self.items, self.offsets = _joined(sets)
        else:
            raise TypeError(f"sets: got {type(sets).__name__} beside offsets; expected all items in one tensor, (M,)")
        self._sizes = self.offsets.diff()
        largest = int(self._sizes.max())
        if largest == 0:
            raise ValueError(f"sets: all {len(self)} are empty; expected an item in at least one")
        if size is not None and size < largest:
            raise ValueError(f"size: got {size}; expected at least {largest}, the size of the largest set")
        self.size, self.padding = size or largest, padding

    def __len__(self) -> int:
        return len(self._sizes)

    def batch(self, indices: Tensor) -> Batch:
        """(items, mask), (B, size) each."""
        check_indices(indices, len(self))
        indices = indices.to(self.items.device)
        place = torch.arange(self.size, device=self.items.device)
        mask = place < self._sizes.index_select(0, indices)[:, None]
        where = self.offsets.index_select(0, indices)[:, None] + place
        items = self.items[where.clamp(max=len(self.items) - 1)]
        return items.masked_fill(~mask, self.padding), mask

    def to(self, device: torch.device | str) -> Self:
        """The same sets on a device."""
        return type(self)(self.items.to(device), self.offsets.to(device), size=self.size, padding=self.padding)

    @property
    def shapes(self) -> list[list[int]]:
        """Of items and mask."""
        return [[len(self), self.size], [len(self), self.size]]


class Windows:
    """batch(i) = (characters,), characters[b, j] = text[stride i_b + j], (B, length): windows of one text, not copied.

    There are n = (T - length) // stride + 1 of them. What is left at the end and fills no window is never seen.

    Args:
        text: codes of characters, (T,), T >= length.
        length: of a window.
        stride: from the start of a window to that of the next; None: `length`, so that no character comes twice.

    >>> Windows(torch.arange(10), length=4, stride=3).batch(torch.tensor([0, 2]))
    (tensor([[0, 1, 2, 3],
            [6, 7, 8, 9]]),)
    """

    def __init__(self, text: Tensor, length: int, stride: int | None = None):
        stride = length if stride is None else stride
        _check_vector("text", text, "codes of characters, (T,)")
        if length < 1 or stride < 1:
            raise ValueError(f"length, stride: got {length} and {stride}; expected positive integers")
        if len(text) < length:
            raise ValueError(f"text: got {len(text)} characters; expected at least length = {length}, one window")
        self.text, self.length, self.stride = text, length, stride

    def __len__(self) -> int:
        return (len(self.text) - self.length) // self.stride + 1

    def batch(self, indices: Tensor) -> Batch:
        """(characters,), (B, length)."""
        check_indices(indices, len(self))
        windows = self.text.unfold(0, self.length, self.stride)  # a view, (n, length)
        return (windows.index_select(0, indices.to(self.text.device)),)

    def to(self, device: torch.device | str) -> Self:
        """The same windows on a device."""
        return type(self)(self.text.to(device), self.length, self.stride)

    @property
    def shapes(self) -> list[list[int]]:
        """Of all windows, if they were copied."""
        return [[len(self), self.length]]


def _joined(sets: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """All items in one tensor, and the offsets of the sets in it."""
    if len(sets) == 0:
        raise ValueError("sets: got none; expected at least one")
    for place, one in enumerate(sets):
        _check_vector(f"sets[{place}]", one, "items, (n,)")
        if one.dtype != sets[0].dtype:
            raise TypeError(f"sets[{place}]: got {one.dtype}; expected {sets[0].dtype}, as in the first")
    sizes = torch.tensor([0, *map(len, sets)], device=sets[0].device)
    return torch.cat(list(sets)), sizes.cumsum(0)


def _checked_offsets(items: Tensor, offsets: Tensor | None) -> Tensor:
    """Offsets that cut all of the items into sets, where the items are."""
    _check_vector("sets", items, "a sequence of tensors, or all items, (M,), and offsets")
    if offsets is None:
        raise ValueError("offsets: got None beside one tensor of items; expected (n + 1,), where each set begins")
    _check_vector("offsets", offsets, "integers, (n + 1,)")
    if offsets.is_floating_point() or len(offsets) < 2:
        raise ValueError(f"offsets: got {offsets.tolist()[:5]}; expected integers, at least 0 and the number of items")
    first, last, step = int(offsets[0]), int(offsets[-1]), int(offsets.diff().min())
    if first != 0 or last != len(items) or step < 0:
        raise ValueError(
            f"offsets: got {first} to {last}, smallest step {step}; "
            f"expected 0 to {len(items)}, the number of items, ascending"
        )
    return offsets.to(items.device)


def check_indices(indices: Tensor, number: int) -> None:
    """Integers in [0, number), (B,); their values are looked at where `checks.values` allows it."""
    _check_vector("indices", indices, "integers, (B,)")
    checks.indices("indices", indices, tuple(indices.shape), torch.tensor(number))


def _check_vector(name: str, value: object, expected: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: got {type(value).__name__}; expected {expected}")
    if value.dim() != 1:
        raise ValueError(f"{name}: got a tensor of shape {tuple(value.shape)}; expected {expected}")
