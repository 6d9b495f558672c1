"""The loss in compiled kernels, where that works; as it is written where it does not."""

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from tessella.contracts import Trainable

REASON = 3  # lines of an error: compilers name themselves in the first


class FusedLoss:
    """*batch -> model.loss(*batch), compiled at the first call, for batches that always have the same shape.

    A flow is a few hundred small kernels for every layer of its networks: fused, they are a few. What cannot be
    compiled, for whatever reason, is no error: a warning says why, and the loss is computed as it is written.

    Args:
        model: whose loss it is; models of the same structure share one compilation.
    """

    def __init__(self, model: Trainable):
        self.model, self._compiled = model, True

    def __call__(self, *batch: Tensor) -> Tensor:
        """The scalar loss."""
        if self._compiled:
            try:
                return _compiled()(self.model, *batch)
            except Exception as error:
                self._compiled = False
                reason = " ".join(f"{type(error).__name__}: {error}".strip().splitlines()[:REASON])
                warnings.warn(f"the loss of {type(self.model).__name__} is not compiled: {reason}", stacklevel=2)
        return self.model.loss(*batch)


@cache
def _compiled() -> Callable[..., Tensor]:
    """The compiler takes as long to import as torch itself, so it is not asked for before it is needed."""

    def apply(model: Trainable, *batch: Tensor) -> Tensor:
        return model.loss(*batch)

    return torch.compile(apply, dynamic=False)
