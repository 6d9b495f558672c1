"""Programs of many short kernels, recorded once as CUDA graphs, forwards and backwards, and replayed."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Recordings:
    """What was recorded, by the shapes of its arguments; a copy of a flow records its own.

    Outputs and gradients of what is replayed are overwritten by the next replay: copy what is kept.
    """

    def __init__(self) -> None:
        self._recorded: dict[Any, nn.Module] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> "Recordings":
        return Recordings()

    def of(
        self, make: Callable[[bool], nn.Module], arguments: Sequence[Tensor], moving: int, *also: object
    ) -> nn.Module:
        """The program, recorded if it is not yet.

        Args:
            make: whether it shall be compiled -> the program. The parameters of all must be the same.
            arguments: of the shapes that will come.
            moving: so many first ones have gradients in any case, others if they have one now.
            also: what else the program depends on, beside the arguments' shapes.
        """
        needs = [i < moving or argument.requires_grad for i, argument in enumerate(arguments)]
        kinds = [(argument.shape, argument.dtype, argument.device) for argument in arguments]
        key = (*zip(kinds, needs, strict=True), *also)
        if key not in self._recorded:
            example = tuple(
                torch.zeros_like(one).requires_grad_(need) for one, need in zip(arguments, needs, strict=True)
            )
            self._recorded[key] = _recorded(make, example)
        return self._recorded[key]


def _recorded(make: Callable[[bool], nn.Module], example: tuple[Tensor, ...]) -> nn.Module:
    """What cannot be compiled is recorded as it is written; what cannot be recorded is evaluated as it is written."""
    for how, compiled in (("compiled", True), ("recorded", False)):
        program = make(compiled)  # in training, as a new module is: a replay asks for the mode it was recorded in
        try:
            torch.cuda.make_graphed_callables(program, example, allow_unused_input=True)  # changes the module's forward
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
            warnings.warn(
                f"continuous flow: not {how}, evaluations take several times as long ({reason})", stacklevel=2
            )
        else:
            return program
    return make(False)
