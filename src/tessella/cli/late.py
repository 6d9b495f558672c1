"""Commands whose fields take torch to describe: they are imported where the line asks for them."""

from collections.abc import Callable, Sequence
from typing import Any


def train() -> None:
    """Train a model on a table: tessella train mushroom, or tessella train table.csv.

    It starts from the recipe that the results were made with; any field can be changed, e.g. `tessella train
    nursery --preset small --cells.dim 4 --steps 8000`, and `tessella train nursery --help` lists them all. Killed
    or interrupted runs continue when the same command is given again. `tessella evaluate FOLDER` says how good the
    result is.
    """


def reproduce() -> None:
    """Reproduce an experiment of the paper, with pictures and a record of the numbers."""


def late_commands(arguments: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """`train` and `reproduce`: for the list of commands, or with all that they take."""
    found: dict[str, Callable[..., Any]] = {"reproduce": reproduce, "train": train}
    if arguments[:1] == ["train"]:
        from tessella.cli.train import train_like

        found["train"] = train_like(arguments)
        found["train"].__doc__ = train.__doc__
    if arguments[:1] == ["reproduce"]:
        from tessella.cli import reproduce as package

        found["reproduce"] = package.reproduce
    return found
