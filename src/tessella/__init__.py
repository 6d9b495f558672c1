"""tessella: likelihood models that join discrete and continuous data through learnable tessellations of space.

Everything of the method in one import: cells and the map into them, dequantizers, densities, models; the estimators for
tables and vectors, which bring scikit-learn with them, are imported when first asked for.
"""

from typing import TYPE_CHECKING, Any

from tessella.bijections import ActNorm, Bijection, CellBijection, Chain, Coupling, Invert
from tessella.contracts import Batch, Likelihood, Source, Trainable
from tessella.data import Rows, TableShape
from tessella.densities import Density, DisjointMixture, Flow, Gaussian, StudentT
from tessella.dequantizers import Cells, Dequantizer
from tessella.geometry import Box, Laguerre, Tessellation, Voronoi
from tessella.models import FlowConfig, SemiDiscrete, VectorModel
from tessella.training import TrainingConfig, fit
from tessella.version import __version__

if TYPE_CHECKING:
    from tessella.estimators import MixtureFlow, TabularFlow

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


def __getattr__(name: str) -> Any:
    """Estimators bring scikit-learn with them, so they are imported when first asked for."""
    if name in ("MixtureFlow", "TabularFlow"):
        from tessella import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'tessella' has no attribute {name!r}")
