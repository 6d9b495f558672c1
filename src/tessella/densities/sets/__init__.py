"""Densities of the points of a set: whatever their order, whatever their number."""

from tessella.densities.sets.bases import GaussianItems, SetBase
from tessella.densities.sets.configs import (
    ContinuousSetConfig,
    CouplingSetConfig,
    GaussianBaseConfig,
    MixtureBaseConfig,
    SetBaseConfig,
    SetDensityConfig,
)
from tessella.densities.sets.flow import SetFlowDensity, item_couplings
from tessella.densities.sets.kinds import KindsOfSets
from tessella.densities.sets.mixture import ItemMixture
from tessella.densities.sets.sizes import SetSizes, log_orders, mask_of
from tessella.densities.sets.symmetric import draw_distinct, log_symmetric

__all__ = [
    "ContinuousSetConfig",
    "CouplingSetConfig",
    "GaussianBaseConfig",
    "GaussianItems",
    "ItemMixture",
    "KindsOfSets",
    "MixtureBaseConfig",
    "SetBase",
    "SetBaseConfig",
    "SetDensityConfig",
    "SetFlowDensity",
    "SetSizes",
    "draw_distinct",
    "item_couplings",
    "log_orders",
    "log_symmetric",
    "mask_of",
]
