"""Which rows are for training, for validation and for the test."""

import numpy as np


def shuffled(rows: int, seed: int, train: int, validation: int) -> list[np.ndarray]:
    """RandomState(seed).permutation(rows), cut after `train` and after `validation` more; the rest is the test.

    >>> [len(part) for part in shuffled(10, seed=0, train=7, validation=2)]
    [7, 2, 1]
    """
    return np.split(np.random.RandomState(seed).permutation(rows), [train, train + validation])


def last_tenth(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All but the last tenth, rounded down, and the last tenth.

    >>> last_tenth(np.arange(12))
    (array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10]), array([11]))
    """
    first = len(rows) - len(rows) // 10
    return rows[:first], rows[first:]
