"""How many threads: as many as make an update fastest, among those that the process may use.

More threads are not always faster. Small products are over before a second thread has begun; and where another program
is busy on one of the cores, each of the thousand operations that threads share in an update waits for that core. So
updates are timed (`training.pace`), and fewer threads are taken unless more are clearly faster.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from pathlib import Path

import torch

FASTER = 1.15  # more threads must be so many times as fast
SLOWER = 3.0  # updates that take so many times as long as planned are a collapse
STRETCH = 2.0  # seconds, and two updates at least, that are looked at together
ADDITIONS, FEW_ADDITIONS = 1000, 300  # that threads share, to see whether they wait for each other
WAITING = 4.0  # times as long as one thread alone is too long
CGROUPS, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

_outside: ContextVar[int | None] = ContextVar("outside", default=None)


def usable() -> int:
    """min(CPUs of the process's affinity, of its container's quota, torch's own number of threads), at least 1.

    Torch's own number is that outside of `using`.
    """
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min(cpus, cpu_quota(), _outside.get() or torch.get_num_threads())))


def cpu_quota(cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> float:
    """CPUs' worth of time that the process's control group and those above it may use; infinity without a limit.

    Version 2 says "quota period" in `cpu.max`, version 1 has a file for each; "max" and -1 stand for no limit.
    """
    return min((_limit(folder) for folder in _folders(cgroups, membership)), default=inf)


def _folders(cgroups: Path, membership: Path) -> Iterator[Path]:
    """The process's groups and those above; inside a container the topmost is often all that can be seen."""
    for line in _words(membership, "\n"):
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            top = cgroups / "cpu" if controllers else cgroups
            group = top / path.lstrip("/")
            yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(top))
    yield from (cgroups, cgroups / "cpu")


def _limit(folder: Path) -> float:
    quota = _words(folder / "cpu.max") or [
        *_words(folder / "cpu.cfs_quota_us"),
        *_words(folder / "cpu.cfs_period_us"),
    ]
    try:
        share, period = map(float, quota)
    except ValueError:  # "max", or no such files
        return inf
    return share / period if share > 0 < period else inf


def _words(path: Path, separator: str | None = None) -> list[str]:
    try:
        return path.read_text().strip().split(separator)
    except OSError:
        return []


def candidates(most: int) -> list[int]:
    """1, 2, 4, ...

    >>> candidates(1), candidates(6)
    ([1], [1, 2, 4])
    """
    return [2**i for i in range(most.bit_length())]


def fastest(seconds: Callable[[int, float], float], numbers: Sequence[int]) -> tuple[int, float]:
    """The number of threads to take, and the seconds that an update takes with them.

    Args:
        seconds: (threads, worth) -> seconds of an update; it may give up, and return any larger number, once that is
            certainly more than `worth`.
        numbers: to try, ascending; the first that is not faster by `FASTER` ends the search.

    >>> fastest(lambda threads, worth: {1: 1.0, 2: 0.6, 4: 0.55, 8: 0.1}[threads], [1, 2, 4, 8])
    (2, 0.6)
    """
    best = numbers[0], seconds(numbers[0], inf)
    for number in numbers[1:]:
        took = seconds(number, best[1] / FASTER)
        if took * FASTER > best[1]:
            break
        best = number, took
    return best


def contended(threads: int, additions: int = ADDITIONS, clock: Callable[[], float] = time.perf_counter) -> bool:
    """Whether threads that share small pieces of work wait for each other most of the time.

    So they do where a core is busy with something else. It takes a tenth of a second to see that here; an update, which
    cannot be stopped, may then take a hundred times as long as with one thread. The number of threads stays `threads`.
    """
    shared = torch.ones(2**17)

    def seconds(threads: int, longest: float) -> float:
        torch.set_num_threads(threads)
        shared.add_(1)  # wakes them
        began = clock()
        for _ in range(additions):
            shared.add_(1)
            if clock() - began > longest:
                break
        return clock() - began

    longest = WAITING * seconds(1, inf)
    return seconds(threads, longest) > longest


def uncontended() -> int:
    """All usable threads, or 1 where they would wait for each other: for work that is not worth a trial of its own."""
    most = usable()
    with using(most):
        return 1 if most > 1 and contended(most, FEW_ADDITIONS) else most


@contextmanager
def using(threads: int) -> Iterator[None]:
    """So many threads inside, at the beginning; outside torch's number as before, whatever was set inside."""
    before = torch.get_num_threads()
    token = _outside.set(_outside.get() or before)
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _outside.reset(token)


class Watch:
    """Whether updates have come to take `SLOWER` times as long as planned, over a stretch of `STRETCH` seconds or more.

    The slowest of a stretch does not count: a moment in which the machine did something else is no collapse.

    Args:
        pace: planned seconds of an update.
        rest: seconds of updates before it looks at any, so that measuring again stays a small part of the time.

    >>> watch = Watch(pace=0.1)
    >>> [watch.saw(seconds) for seconds in (5.0, 0.1, 5.0, 5.0)]
    [False, False, False, True]
    """

    def __init__(self, pace: float, rest: float = 0.0):
        self.pace, self._rest = pace, rest
        self._updates, self._seconds, self._slowest = 0, 0.0, 0.0

    def saw(self, seconds: float) -> bool:
        """An update took so long; whether the stretch that it completes is a collapse."""
        if self._rest > 0:
            self._rest -= seconds
            return False
        self._updates += 1
        self._seconds += seconds
        self._slowest = max(self._slowest, seconds)
        if self._updates < 2 or self._seconds < STRETCH:
            return False
        mean = (self._seconds - self._slowest) / (self._updates - 1)
        self._updates, self._seconds, self._slowest = 0, 0.0, 0.0
        return mean > SLOWER * self.pace
