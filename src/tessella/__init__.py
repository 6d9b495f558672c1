"""tessella: likelihood models that join discrete and continuous data through learnable tessellations of space."""

from typing import TYPE_CHECKING, Any

from tessella.bijections import ActNorm, Bijection, CellBijection, Chain, Invert
from tessella.geometry import Box, Laguerre, Tessellation, Voronoi
from tessella.version import __version__

if TYPE_CHECKING:
    from tessella.estimators import MixtureFlow, TabularFlow

__all__ = [
    "ActNorm",
    "Bijection",
    "Box",
    "CellBijection",
    "Chain",
    "Invert",
    "Laguerre",
    "MixtureFlow",
    "TabularFlow",
    "Tessellation",
    "Voronoi",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Estimators bring scikit-learn with them, so they are imported when first asked for."""
    if name in ("MixtureFlow", "TabularFlow"):
        from tessella import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'tessella' has no attribute {name!r}")
