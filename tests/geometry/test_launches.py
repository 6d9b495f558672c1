"""What was compiled is launched again for arguments of the same kind, and for no others."""

from typing import Any

import pytest
import torch

from tessella.geometry.launches import Launch

GRID = (2, 1, 1)
BASE = torch.zeros(64, dtype=torch.float32)
POINTS, SHIFTED = BASE[16:32], BASE[17:33]  # at a multiple of 16 bytes, and not
CALL = ((POINTS, None), (32, 7), (3, True), 2)


class Kernel:
    """Compiles for whatever comes, and notes what is compiled and launched."""

    def __init__(self, interpreted: bool = False):
        self.interpreted = interpreted
        self.compiled: list[tuple[Any, ...]] = []
        self.launched: list[tuple[int, tuple[Any, ...]]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def dispatch(*args: Any, **options: Any) -> Any:
            self.compiled.append((*args, options["num_warps"]))
            return None if self.interpreted else Compiled(self, len(self.compiled) - 1)

        return dispatch


class Compiled:
    def __init__(self, kernel: Kernel, number: int):
        self.kernel, self.number = kernel, number

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *args: self.kernel.launched.append((self.number, args))


def test_the_same_kind_of_arguments_is_launched_at_once() -> None:
    kernel = Kernel()
    launch = Launch(kernel)
    other = (torch.ones_like(POINTS), None)
    launch(GRID, *CALL)
    launch(GRID, other, (48, 9), *CALL[2:])
    assert len(kernel.compiled) == 1
    [(number, args)] = kernel.launched
    assert number == 0
    assert args[0] is other[0]
    assert args[1:] == (None, 48, 9, 3, True)


@pytest.mark.parametrize(
    "call",
    [
        ((SHIFTED, None), *CALL[1:]),
        ((POINTS.double(), None), *CALL[1:]),
        ((POINTS, POINTS), *CALL[1:]),
        ((None, POINTS), *CALL[1:]),
        (CALL[0], (33, 7), *CALL[2:]),
        (CALL[0], (32, 1), *CALL[2:]),
        (CALL[0], (2**31, 7), *CALL[2:]),
        (*CALL[:2], (4, True), CALL[3]),
        (*CALL[:2], (3, False), CALL[3]),
        (*CALL[:3], 4),
    ],
    ids=["alignment", "dtype", "one more", "another", "not whole", "one", "64 bits", "constant", "flag", "warps"],
)
def test_another_kind_is_compiled_for_itself(call: tuple[Any, ...]) -> None:
    kernel = Kernel()
    launch = Launch(kernel)
    for _ in range(2):
        launch(GRID, *CALL)
        launch(GRID, *call)
    assert len(kernel.compiled) == 2
    assert [number for number, _ in kernel.launched] == [0, 1]


def test_the_interpreter_is_asked_every_time() -> None:
    kernel = Kernel(interpreted=True)
    launch = Launch(kernel)
    launch(GRID, *CALL)
    launch(GRID, *CALL)
    assert len(kernel.compiled) == 2
    assert not kernel.launched
