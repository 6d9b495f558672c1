"""Ctrl-C that waits for the end of a step."""

import signal
import threading
from types import FrameType
from typing import Self


class Interruption:
    """While entered, the first Ctrl-C only sets `requested`; a second one acts as it did before.

    An exception in the middle of a step would leave weights, moments and averages that do not belong together. Outside
    the main thread, where Python allows no handlers, nothing is changed.
    """

    def __init__(self) -> None:
        self.requested = False
        self._installed = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._request) or signal.default_int_handler
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._restore()

    def _restore(self) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._before)
            self._installed = False
