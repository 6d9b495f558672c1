"""Words and tables that the pages of results share."""

from collections.abc import Iterable, Sequence

DASH = "-"


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    rows = [header, ["---"] * len(header), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def duration(seconds: float) -> str:
    """Seconds, or minutes where they are many.

    >>> duration(99), duration(150)
    ('99.0 s', '2.5 min')
    """
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
