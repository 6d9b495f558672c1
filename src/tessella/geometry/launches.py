"""Triton's kernels, launched without a detour.

Each call of a kernel binds names, describes every argument and looks options up, tens of microseconds of a host, where
small kernels run for a few. What a compiled kernel depends on is much less.
"""

from collections.abc import Hashable
from typing import Any

from torch import Tensor

ALIGNED = 16  # bytes, or numbers: where tensors begin and rows end at multiples of it, several are loaded at once


class Launch:
    """A kernel, called as kernel(*tensors, *sizes, *constants).

    Args:
        kernel: a function under `triton.jit`, with its parameters in this order.
    """

    def __init__(self, kernel: Any):
        self.kernel = kernel
        self.compiled: dict[Hashable, Any] = {}

    def __call__(
        self,
        grid: tuple[int, int, int],
        tensors: tuple[Tensor | None, ...],
        sizes: tuple[int, ...],
        constants: tuple[Hashable, ...],
        warps: int,
    ) -> None:
        """On the current device and stream. What was compiled before for such arguments is launched at once."""
        kinds = [None if t is None else (t.dtype, t.data_ptr() % ALIGNED == 0) for t in tensors]
        numbers = [(n == 1, n % ALIGNED == 0, n < 2**31) for n in sizes]
        device = next(t.get_device() for t in tensors if t is not None)
        key = (constants, warps, device, *kinds, *numbers)
        compiled = self.compiled.get(key)
        if compiled is None:  # and, under Triton's interpreter, for ever
            # A multiplication and an addition become one instruction; Triton is about to ask for it.
            options = {"num_warps": warps, "enable_fp_fusion": True}
            self.compiled[key] = self.kernel[grid](*tensors, *sizes, *constants, **options)
        else:
            compiled[grid](*tensors, *sizes, *constants)
