"""`tessella reproduce EXPERIMENT`: the experiments of the paper, one function each."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tessella.cli.nested import one_of
from tessella.cli.reproduce.figures import cell_map, dequantizers
from tessella.cli.reproduce.itemsets import itemsets
from tessella.cli.reproduce.quantized import quantized_2d
from tessella.cli.reproduce.regimes import when_cells_help
from tessella.cli.reproduce.tables import sampling_speed, tables
from tessella.cli.reproduce.texts import text
from tessella.cli.reproduce.toys import mixture_2d
from tessella.cli.reproduce.vectors import continuous

# A further experiment is a function with a docstring and a line here.
EXPERIMENTS: dict[str, Callable[..., None]] = {
    "tables": tables,
    "cell-map": cell_map,
    "quantized-2d": quantized_2d,
    "dequantizers": dequantizers,
    "mixture-2d": mixture_2d,
    "when-cells-help": when_cells_help,
    "continuous": continuous,
    "itemsets": itemsets,
    "text": text,
    "sampling-speed": sampling_speed,
}


if TYPE_CHECKING:
    Experiment = Callable[[], None]
else:
    Experiment = one_of(EXPERIMENTS)


def reproduce(experiment: Experiment) -> None:
    """Reproduce an experiment of the paper, with pictures and a record of the numbers.

    Args:
        experiment: which; `tessella reproduce EXPERIMENT --help` says what it takes.
    """
    experiment()
