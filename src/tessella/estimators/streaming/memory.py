"""Whether a table fits into memory."""

import os
from contextlib import suppress
from pathlib import Path

GIGABYTE = 10**9
PER_CELL = 100  # bytes of a cell, as a plain value and encoded: 83 were measured on a table of five columns
SHARE = 0.5  # of the memory that there is
UNKNOWN = 8 * GIGABYTE  # where nobody knows how much that is
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of containers


def estimate(rows: int, columns: int) -> int:
    """Bytes that a table takes while it is fitted as a whole, about.

    >>> estimate(1_000_000, 20) / GIGABYTE
    2.0
    """
    return PER_CELL * rows * columns


def budget(memory: float | None) -> float:
    """Bytes that a table may take: so many gigabytes, or half of the memory of the machine or its container."""
    if memory is not None:
        if not memory >= 0:
            raise ValueError(f"memory: got {memory}; expected gigabytes, at least 0, or None")
        return memory * GIGABYTE
    return SHARE * min([_physical(), *map(_limit, LIMITS)])


def _physical() -> float:
    with suppress(AttributeError, ValueError, OSError):  # other systems
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return UNKNOWN


def _limit(path: str) -> float:
    with suppress(OSError, ValueError):  # no such file, or "max"
        return float(Path(path).read_text())
    return float("inf")
