"""What people watch while they wait: a bar on a terminal; elsewhere, in a log, a plain line every few seconds.

It goes to standard error, so that standard output holds results alone.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
Part = TypeVar("Part", bound=Sized)

SECONDS = 5.0  # between two lines where there is no terminal


class Progress:
    """`n` of `total`, and a note.

    Args:
        what: what is counted, for lines and bars: "training", "rows scored".
        total: where it ends; None where nobody knows.
        visible: False shows nothing.
        first: where it begins.
        keep: whether the last state stays to be read.
        clock: seconds, for lines.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        visible: bool = True,
        first: int = 0,
        keep: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.what, self.total, self.n = what, total, first
        self._note, self._keep, self._clock = "", keep, clock
        self._lines = visible and not sys.stderr.isatty()
        self._said = (clock() if self._lines else 0.0), -1  # when, and where it stood
        share = "" if total is None else "{percentage:3.0f}%|{bar}| "
        end = "" if total is None else "/{total_fmt}"
        form = f"{what}: {share}{{n_fmt}}{end}{{postfix}}"
        self._bar = None
        if visible and not self._lines:
            self._bar = tqdm(total=total, initial=first, dynamic_ncols=True, bar_format=form, leave=keep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.refresh()
            self._bar.close()
        elif self._lines and self._keep and self._said[1] != self.n:
            self._say()

    def move(self, n: int, note: str = "", total: int | None = None) -> None:
        """To `n`, counted from the beginning; where it ends now, if that has changed."""
        self.n, self._note, self.total = n, note, self.total if total is None else total
        if self._bar is not None:
            self._bar.total = self.total
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(n - self._bar.n)
        elif self._lines and self._clock() - self._said[0] >= SECONDS:
            self._say()

    def _say(self) -> None:
        share = "" if self.total is None else f"/{self.total} ({self.n / max(self.total, 1):.0%})"
        say(f"{self.what}: {self.n}{share}" + (f", {self._note}" if self._note else ""))
        self._said = self._clock(), self.n


def say(line: str) -> None:
    """A line on standard error, above the bar where there is one."""
    tqdm.write(line, file=sys.stderr)
    sys.stderr.flush()


def each(items: Sequence[Item], what: str, visible: bool = True) -> Iterator[Item]:
    """The items, one after another, and how many of them are done; nothing stays when it ends."""
    with Progress(what, len(items), visible, keep=False) as progress:
        for done, item in enumerate(items, 1):
            yield item
            progress.move(done)


_watched: ContextVar[Progress | None] = ContextVar("watched", default=None)


@contextmanager
def watching(what: str, total: int | None, visible: bool = True) -> Iterator[None]:
    """Show how many rows have gone through the loops over `counted` inside."""
    with Progress(what, total, visible, keep=False) as progress:
        token = _watched.set(progress)
        try:
            yield
        finally:
            _watched.reset(token)


def counted(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts of some rows, tensors or batches, one after another; whoever is watching learns when one is done.

    >>> import torch
    >>> with watching("rows", 5, visible=False):
    ...     [len(part) for part in counted(torch.zeros(5, 2).split(2))]
    [2, 2, 1]
    """
    for part in parts:
        yield part
        passed(len(part[0] if isinstance(part, tuple) else part))


def passed(rows: int) -> None:
    """Whoever is watching learns that so many more are done."""
    if (progress := _watched.get()) is not None:
        progress.move(progress.n + rows)
