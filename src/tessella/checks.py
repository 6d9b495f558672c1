"""Errors that teach: every check names the argument, what came, and what was expected.

Shapes and dtypes are always checked (they cost nothing). Checks of *values* need the numbers on the host, so they are
skipped inside compiled graphs and `torch.func` transforms, and can be switched off around a hot loop:

>>> from tessella import checks
>>> with checks.values(False):
...     checks.finite("x", torch.tensor([float("nan")]))
>>> checks.finite("x", torch.tensor([0.0, float("nan")]))
Traceback (most recent call last):
    ...
tessella.checks.NotFiniteError: x: 1 of 2 values are NaN or infinite; expected finite numbers
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite

import torch
from torch import Tensor
from torch.autograd import forward_ad

_values_checked = True


class NotFiniteError(ValueError):
    """Some numbers are NaN or infinite."""


@contextmanager
def values(enabled: bool) -> Iterator[None]:
    """Switch the checks of values on or off for the duration of a `with` block."""
    global _values_checked
    before, _values_checked = _values_checked, enabled
    try:
        yield
    finally:
        _values_checked = before


def readable(tensor: Tensor) -> bool:
    """Whether the numbers may be looked at: not while tracing, not through a vmap, not when switched off."""
    if torch.compiler.is_compiling() or not _values_checked:
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def followed() -> bool:
    """Whether somebody follows single operations: a compiler, a transform of `torch.func`, forward-mode gradients."""
    if torch.compiler.is_compiling():
        return True
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def floating(name: str, tensor: Tensor, dtype: torch.dtype | None = None) -> None:
    """`tensor` holds real numbers, of `dtype` where one is given."""
    if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
        raise TypeError(f"{name}: got {_kind(tensor)}; expected a floating-point tensor")
    if dtype is not None and tensor.dtype != dtype:
        raise TypeError(f"{name}: got {tensor.dtype}; expected {dtype}, the dtype of the anchors (use .to(dtype))")


def trailing(name: str, tensor: Tensor, expected: tuple[int, ...], letters: str) -> None:
    """The last dimensions of `tensor` are `expected`; `letters` names them in the message."""
    n = len(expected)
    if tensor.dim() < n or tuple(tensor.shape[tensor.dim() - n :]) != expected:
        raise ValueError(
            f"{name}: got shape {tuple(tensor.shape)}; expected (*batch, {letters}) = (*batch, {_join(expected)})"
        )


def finite(name: str, tensor: Tensor) -> None:
    """No NaN, no infinity. One reduction in the good case; a sum that overflows is looked at twice."""
    if not readable(tensor) or isfinite(tensor.detach().sum().item()):
        return
    bad = int((~tensor.isfinite()).sum())
    if bad:
        raise NotFiniteError(f"{name}: {bad} of {tensor.numel()} values are NaN or infinite; expected finite numbers")


def indices(name: str, tensor: Tensor, shape: tuple[int, ...], below: Tensor) -> None:
    """`tensor` holds integers in [0, below), with the given shape; `below` broadcasts against it."""
    if (
        not isinstance(tensor, Tensor)
        or tensor.is_floating_point()
        or tensor.is_complex()
        or tensor.dtype == torch.bool
    ):
        raise TypeError(f"{name}: got {_kind(tensor)}; expected a tensor of integers")
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: got shape {tuple(tensor.shape)}; expected {shape}")
    # The sign bit of (a | b) is set when a or b is negative.
    if not readable(tensor) or tensor.numel() == 0 or int((tensor | (below - 1 - tensor)).min()) >= 0:
        return
    where = tuple(((tensor < 0) | (tensor >= below)).nonzero()[0].tolist())
    limit = int(below.expand(shape)[where])
    raise ValueError(
        f"{name}: value {int(tensor[where])} at {list(where)} is out of range; expected 0 <= {name} < {limit}"
    )


def _kind(value: object) -> str:
    return f"a tensor of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__


def _join(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))
