"""What a model must be told about a table before it sees a row."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TableShape:
    """Rows (codes, numbers): codes (B, G) below their counts, numbers (B, R) in the units of their columns.

    A table without numbers is the special case R = 0, whose rows are (codes,).
    """

    counts: tuple[int, ...]
    """Categories K_j of each of the G categorical variables."""
    whole: tuple[bool, ...] = ()
    """For each of the R numbers whether it is an integer, which has a mass, rather than a real number."""
    indicators: tuple[int, ...] = ()
    """For each number the categorical variable that says whether it is there (1) or something else is said instead
    (missing, an atom); -1 where it always is there."""
    ordered: tuple[bool, ...] = ()
    """For each categorical variable whether its codes have an order; none has without it."""

    @property
    def numbers(self) -> int:
        """R."""
        return len(self.whole)

    @property
    def variables(self) -> int:
        """G + R."""
        return len(self.counts) + len(self.whole)
