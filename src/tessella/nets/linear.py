"""Affine maps, multiplied by whichever of PyTorch's two libraries is faster on this processor.

On x86 PyTorch multiplies single-precision matrices by MKL, which uses half of the vector units of a processor with
AVX-512 that is not Intel's. oneDNN comes with PyTorch, too, and uses all of them: 2.2 times as many products a second
(docs/performance.md). Both sum in single precision; they differ in the last digits.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella import checks

MANY = 2**20  # products from which on oneDNN's longer calls pay
ROWS = 32  # with fewer, reading the weights takes the time

_wanted: bool | None = None


@contextmanager
def onednn(enabled: bool) -> Iterator[None]:
    """Multiply by oneDNN, whoever made the processor, or never, for the duration of a `with` block."""
    global _wanted
    before, _wanted = _wanted, enabled
    try:
        yield
    finally:
        _wanted = before


class Linear(nn.Linear):
    """y = x W' + b, (*batch, inputs) -> (*batch, outputs); see `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        """Of the rows of x."""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y = x W' + b, as `torch.nn.functional.linear`, differentiable any number of times.

    Args:
        x: (*batch, inputs).
        weight: W, (outputs, inputs).
        bias: b, (outputs), or none.

    >>> linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([5.0]))
    tensor([[16.]])
    """
    if not _pays(x, weight):
        return functional.linear(x, weight, bias)
    if torch.is_grad_enabled():
        found: Tensor = _Linear.apply(x, weight, bias)
        return found
    return _multiplied(x, weight, bias)


class _Linear(torch.autograd.Function):
    """x W' + b by oneDNN; dx = g W and dW = g' x are such products, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _multiplied(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *pulls: Tensor) -> tuple[Tensor | None, ...]:
        (pull,), (x, weight), (for_x, for_weight, for_bias) = pulls, ctx.saved_tensors, ctx.needs_input_grad
        rows = pull.flatten(0, -2)
        return (
            linear(pull, weight.T) if for_x else None,
            linear(rows.T, x.flatten(0, -2).T) if for_weight else None,
            rows.sum(0) if for_bias else None,
        )


def _multiplied(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(_whole(x), _whole(weight), bias, "none", [], "")
    return found


def _whole(matrix: Tensor) -> Tensor:
    """In one piece of memory, by rows or by columns: for slices of others oneDNN is up to a thousand times slower."""
    return matrix if matrix.is_contiguous() or matrix.mT.is_contiguous() else matrix.contiguous()


def _pays(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN is faster: many products in single precision on such a processor, which nobody follows."""
    return (
        x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and x.dim() > 1
        and x.numel() * len(weight) >= MANY
        and x.numel() >= ROWS * x.shape[-1]
        and (_half_used() if _wanted is None else _wanted)
        and not torch.is_autocast_enabled("cpu")
        and not checks.followed()
    )


@cache
def _half_used() -> bool:
    """Whether MKL uses half of this processor's vector units, and oneDNN is there to use all of them."""
    there = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return there and wide and _vendor() != "GenuineIntel" and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _vendor() -> str:
    """Of the processor, as it says itself; Intel's where nobody can tell, for whom nothing is to be gained."""
    known, info = ("AuthenticAMD", "HygonGenuine", "GenuineIntel"), Path("/proc/cpuinfo")
    said = info.read_text() if info.exists() else platform.processor()
    return next((name for name in known if name in said), "GenuineIntel")
