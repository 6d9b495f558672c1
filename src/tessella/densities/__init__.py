"""Probability densities on R^n, or on (N, D) points. One contract: `Density`."""

from tessella.densities.autoregressive import Autoregressive
from tessella.densities.base import Density
from tessella.densities.cell_mixture import CellMixture
from tessella.densities.configs import (
    BlockOptions,
    CellCouplingConfig,
    CouplingConfig,
    DensityConfig,
    DimensionwiseMixtureConfig,
    DisjointConfig,
    DisjointMixtureConfig,
    FlatCouplingConfig,
    GaussianMixtureConfig,
    GroupCouplingConfig,
    SplineConfig,
)
from tessella.densities.couplings import BlockParts, conditional_flow, flat_flow, group_flow, token_flow
from tessella.densities.dimensionwise import DimensionwiseMixture
from tessella.densities.disjoint import DisjointMixture
from tessella.densities.flow import Flow
from tessella.densities.gaussian_mixture import GaussianMixture
from tessella.densities.ordinary import FlowMixture
from tessella.densities.standard import BASES, Ball, Gaussian, Logistic, StudentT, base_in_cells
from tessella.densities.symmetrized import Symmetrized
from tessella.densities.zuko import ZukoDensity

__all__ = [
    "BASES",
    "Autoregressive",
    "Ball",
    "BlockOptions",
    "BlockParts",
    "CellCouplingConfig",
    "CellMixture",
    "CouplingConfig",
    "Density",
    "DensityConfig",
    "DimensionwiseMixture",
    "DimensionwiseMixtureConfig",
    "DisjointConfig",
    "DisjointMixture",
    "DisjointMixtureConfig",
    "FlatCouplingConfig",
    "Flow",
    "FlowMixture",
    "Gaussian",
    "GaussianMixture",
    "GaussianMixtureConfig",
    "GroupCouplingConfig",
    "Logistic",
    "SplineConfig",
    "StudentT",
    "Symmetrized",
    "ZukoDensity",
    "base_in_cells",
    "conditional_flow",
    "flat_flow",
    "group_flow",
    "token_flow",
]
