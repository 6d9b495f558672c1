"""tessella: likelihood models that join discrete and continuous data through learnable tessellations of space.

Everything of the method in one import: cells and the map into them, dequantizers, densities, models, estimators for
tables, vectors and baskets. What is behind a name is imported when it is first asked for: a command line that only
helps should not wait for torch, nor the method for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tessella.version import __version__

if TYPE_CHECKING:
    from tessella.bijections import ActNorm, Bijection, CellBijection, Chain, Coupling, Invert
    from tessella.contracts import Batch, Likelihood, Source, Trainable
    from tessella.data import Rows, TableShape
    from tessella.densities import Density, DisjointMixture, Flow, Gaussian, StudentT
    from tessella.dequantizers import Cells, Dequantizer
    from tessella.estimators import MixtureFlow, SetFlow, TabularFlow
    from tessella.geometry import Box, Laguerre, Tessellation, Voronoi
    from tessella.models import FlowConfig, SemiDiscrete, VectorModel
    from tessella.training import TrainingConfig, fit

__all__ = [
    "ActNorm",
    "Batch",
    "Bijection",
    "Box",
    "CellBijection",
    "Cells",
    "Chain",
    "Coupling",
    "Density",
    "Dequantizer",
    "DisjointMixture",
    "Flow",
    "FlowConfig",
    "Gaussian",
    "Invert",
    "Laguerre",
    "Likelihood",
    "MixtureFlow",
    "Rows",
    "SemiDiscrete",
    "SetFlow",
    "Source",
    "StudentT",
    "TableShape",
    "TabularFlow",
    "Tessellation",
    "Trainable",
    "TrainingConfig",
    "VectorModel",
    "Voronoi",
    "__version__",
    "fit",
]


_PACKAGES = ("bijections", "contracts", "data", "densities", "dequantizers", "geometry", "models", "training")


def __getattr__(name: str) -> Any:
    if name in (*_PACKAGES, "estimators"):
        return import_module(f"tessella.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'tessella' has no attribute {name!r}")
    packages = ("estimators",) if name in ("MixtureFlow", "SetFlow", "TabularFlow") else _PACKAGES
    homes = (import_module(f"tessella.{package}") for package in packages)
    return next(getattr(home, name) for home in homes if name in home.__all__)


def __dir__() -> list[str]:
    return __all__
