"""From published files to real rows: the preprocessing of Papamakarios et al. (2017), written from its description.

Each parser takes the open files of one form of a table and a random generator, and returns the three parts, not yet
standardised. Departures from what was published are in the parsers' docstrings and, where they change the rows, in
`Parts.rebuilt`.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.random import Generator

# HEPMASS: signal rows of the published table, and features that its training file names
SIGNAL_ROWS = (350_136, 174_987)
_FEATURES = 26
_REPEATS = 5  # how often the smallest value of a HEPMASS column may occur

_THINNING = 4  # the published GAS has a quarter of the file's rows
_CORRELATED = 0.98

_NOT_A_NUMBER = re.compile(rb"[^\s\d.eE+-]")  # in a line of numbers that are separated by blanks


class Parts(NamedTuple):
    """train, validation and test, float (rows, D), and what was drawn anew instead of taken as published."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    rebuilt: str | None


def cut(rows: np.ndarray, rebuilt: str | None) -> Parts:
    """The last tenth is the test, the last tenth of the rest the validation part, both rounded down."""
    rest, test = _last_tenth(rows)
    return Parts(*_last_tenth(rest), test, rebuilt)


def _last_tenth(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = len(rows) - len(rows) // 10
    return rows[:first], rows[first:]


# POWER

_STEPS = np.array([0.001, 0.01, 1, 1, 1, 1])  # of the meters: kilowatt, volt, three watt-hours, minute
_START = 17 * 60 + 24  # the minute of the day of the first row; the compact file has a row for every minute


def power_from_raw(stream: BinaryIO, generator: Generator) -> Parts:
    """Date;hh:mm:ss;active;reactive;voltage;intensity;three sub-meterings, `?` where a value is missing.

    Rows with a missing value, date, reactive power and intensity are left out.
    """
    lines = (line.replace(b":", b";") for line in islice(stream, 1, None) if b"?" not in line)
    values = np.loadtxt(lines, delimiter=";", usecols=(1, 2, 4, 6, 8, 9, 10), ndmin=2)
    return _power(values[:, 2:], 60 * values[:, 0] + values[:, 1], generator)


def power_from_compact(stream: BinaryIO, generator: Generator) -> Parts:
    """The same numbers as integers, in units of their last digit."""
    with np.load(stream, allow_pickle=False) as arrays:
        complete = arrays["missing"] == 0
        columns = (arrays["gap_x1000"] / 1000, arrays["voltage_x100"] / 100, *(arrays[f"sm{k}"] for k in (1, 2, 3)))
        minutes = (_START + np.arange(len(complete))) % (24 * 60)
    return _power(np.stack(columns, axis=1)[complete], minutes[complete], generator)


def _power(meters: np.ndarray, minutes: np.ndarray, generator: Generator) -> Parts:
    """x + step u with u uniform on [0, 1): every value is spread over the step of its meter; then a shuffle.

    The order of columns is active power, voltage, three sub-meterings, minute of the day.
    """
    rows = np.concatenate([meters, minutes[:, None]], axis=1)[generator.permutation(len(meters))]
    rows += _STEPS * generator.random(rows.shape)
    return cut(rows, "rebuilt: order and noise drawn anew from the raw file, not the published draws")


# GAS


def gas_from_raw(stream: BinaryIO, generator: Generator) -> Parts:
    """A header, then time, two concentrations and 16 sensors, separated by blanks; lines with words are left out.

    Every fourth row is kept: the published table has a quarter of the rows, and which ones is not said. They are
    shuffled before they are split, since they are taken for independent draws.
    """
    numbers = (line for line in islice(stream, 1, None) if not _NOT_A_NUMBER.search(line))
    sensors = np.loadtxt(islice(numbers, _THINNING - 1, None, _THINNING), usecols=range(3, 19), ndmin=2)
    rows = uncorrelated(sensors)[generator.permutation(len(sensors))]
    return cut(rows, "rebuilt: every fourth row of the raw file, shuffled; which rows were published is not known")


def uncorrelated(rows: np.ndarray) -> np.ndarray:
    """Drop the first column whose correlation with another exceeds 0.98, until there is none."""
    while True:
        strong = np.corrcoef(rows, rowvar=False) > _CORRELATED
        redundant = np.flatnonzero(strong.sum(axis=1) > 1)  # each is correlated with itself
        if len(redundant) == 0:
            return rows
        rows = np.delete(rows, redundant[0], axis=1)


# HEPMASS


def hepmass_from_raw(training: BinaryIO, testing: BinaryIO, generator: Generator) -> Parts:
    """A header, then label (1 is signal), features, and more in the testing file: the first 26 features of signal rows.

    A column whose smallest value occurs more than five times among the training rows is left out: the number of jets
    and four tags. The last tenth of the training rows is the validation part. Nothing is drawn.

    The published table is a tenth of UCI's files, and which tenth is not said; it is read from the front.
    """
    (train, more), (test, _) = (_signal(*pair) for pair in zip((training, testing), SIGNAL_ROWS, strict=True))
    varied = [n for n, column in enumerate(train.T) if (column == column.min()).sum() <= _REPEATS]
    rebuilt = "rebuilt: the first signal rows of files that have more; which were published is not known"
    return Parts(*_last_tenth(train[:, varied]), test[:, varied], rebuilt if more else None)


def _signal(stream: BinaryIO, most: int) -> tuple[np.ndarray, bool]:
    """At most so many signal rows, and whether there are more."""
    lines = _with_label(islice(stream, 1, None))
    rows = np.loadtxt(islice(lines, most), delimiter=",", usecols=range(1, _FEATURES + 1), ndmin=2)
    return rows, next(lines, None) is not None


def _with_label(lines: Iterable[bytes]) -> Iterator[bytes]:
    return (line for line in lines if float(line[: line.index(b",")]) == 1)


# MINIBOONE


def miniboone_from_raw(stream: BinaryIO, generator: Generator) -> Parts:
    """The array (36488, 43) as Papamakarios et al. preprocessed it, in its own order. Nothing is drawn."""
    return cut(np.load(stream, allow_pickle=False), None)


def miniboone_from_compact(stream: BinaryIO, generator: Generator) -> Parts:
    """The first rows of that array."""
    with np.load(stream, allow_pickle=False) as arrays:
        return cut(arrays["X"], None)
