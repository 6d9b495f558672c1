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


def hashed(rows: np.ndarray, seed: int) -> np.ndarray:
    """A number from [0, 1) for each row, by its place in the table and a seed alone: no row has to be remembered.

    A part of the table is an interval: the rows with hashed(row) < 0.1 are a random tenth of them, in whatever pieces
    and by however many processes they are read.

    >>> hashed(np.arange(3), seed=0).round(3)
    array([0.901, 0.023, 0.4  ])
    """
    mixed = np.random.SeedSequence(seed).generate_state(1, np.uint64) + rows.astype(np.uint64) * _STEP
    for shift, factor in _MIXING:
        mixed = (mixed ^ (mixed >> shift)) * factor
    found: np.ndarray = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
    return found


_STEP = np.uint64(0x9E3779B97F4A7C15)  # steps and mixing of SplitMix64 (Steele, Lea and Flood, 2014)
_MIXING = [
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
]
