"""Probability densities on R^n, or on (N, D) points. One contract: `Density`."""

from tessella.densities.base import Density
from tessella.densities.bases import BASES, Ball, Gaussian, Logistic, StudentT
from tessella.densities.cell_mixture import CellMixture
from tessella.densities.dimensionwise import DimensionwiseMixture
from tessella.densities.disjoint import DisjointMixture
from tessella.densities.flow import Flow
from tessella.densities.flows import conditional_flow, flat_flow, token_flow
from tessella.densities.ordinary import FlowMixture
from tessella.densities.zuko import ZukoDensity

__all__ = [
    "BASES",
    "Ball",
    "CellMixture",
    "Density",
    "DimensionwiseMixture",
    "DisjointMixture",
    "Flow",
    "FlowMixture",
    "Gaussian",
    "Logistic",
    "StudentT",
    "ZukoDensity",
    "conditional_flow",
    "flat_flow",
    "token_flow",
]
