"""`tessella baskets COMMAND`: sets of items, one function for each command."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tessella.cli.baskets.ask import anomalies, complete, sample, score
from tessella.cli.baskets.fit import fit
from tessella.cli.nested import one_of

COMMANDS: dict[str, Callable[..., None]] = {
    "fit": fit,
    "score": score,
    "complete": complete,
    "anomalies": anomalies,
    "sample": sample,
}

if TYPE_CHECKING:
    Command = Callable[[], None]
else:
    Command = one_of(COMMANDS)


def baskets(command: Command) -> None:
    """Baskets of items: how likely each is, what comes next, which are odd, new ones.

    Args:
        command: which; `tessella baskets COMMAND --help` says what it takes.
    """
    command()
