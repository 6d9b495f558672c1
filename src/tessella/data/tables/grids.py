"""What the numbers of a column are made of: a grid on which they lie, atoms that repeat."""

import numpy as np

EXACT = 2**52  # integers beyond this are not exact in double precision
DIGITS = 6  # of the finest grid, after the point
TIED = 0.1  # of the rows share their value where there is a grid, without the most frequent one, which may be an atom
ATOM_ROWS, ATOM_SHARE, MOST_ATOMS = 5, 0.001, 32  # a value of a continuum that comes so often is an atom


def grid_step(numbers: np.ndarray) -> float:
    """The largest of 1, 0.1, ... 10^-6 of which all the numbers are multiples; 0 if there is none.

    >>> grid_step(np.array([0.25, 0.1 + 0.2])), grid_step(np.array([1e-9, 1.0]))
    (0.01, 0.0)
    """
    steps = (10.0**-digits for digits in range(DIGITS + 1))
    return next((step for step in steps if on_grid(numbers, step).all()), 0.0)


def on_grid(numbers: np.ndarray, step: float) -> np.ndarray:
    """Which numbers are multiples of a step, up to the rounding of the precision that they came in."""
    with np.errstate(over="ignore"):
        single = numbers == numbers.astype(np.float32)
    scaled = numbers / step
    slack = np.minimum(np.where(single, 1e-7, 1e-10) * np.abs(scaled), 0.01)
    return (np.abs(scaled - np.round(scaled)) <= slack) & (np.abs(scaled) < EXACT)


def tied(numbers: np.ndarray) -> bool:
    """Whether values repeat so often that a grid shows; where they do not, a density describes them as well."""
    frequency = np.unique(numbers, return_counts=True)[1]
    return bool(len(frequency) - 1 <= (1 - TIED) * (len(numbers) - frequency.max()))


def atoms_of(numbers: np.ndarray) -> dict[float, int]:
    """The values that come so often that no density describes them, rising, and how often.

    >>> atoms_of(np.array([0.0] * 7 + [1.5] * 5 + [0.1, 0.2, 0.2]))
    {0.0: 7, 1.5: 5}
    """
    values, frequency = np.unique(numbers, return_counts=True)
    often = np.flatnonzero(frequency >= max(ATOM_ROWS, ATOM_SHARE * len(numbers)))
    kept = np.sort(often[np.argsort(-frequency[often], kind="stable")][:MOST_ATOMS])
    return dict(zip(values[kept].tolist(), frequency[kept].tolist(), strict=True))
