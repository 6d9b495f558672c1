"""Probability densities on R^n, or on (N, D) points. One contract: `Density`."""

from tessella.densities.base import Density
from tessella.densities.basic import BASES, Ball, Gaussian, Logistic, StudentT
from tessella.densities.build import conditional_flow, flat_flow, token_flow
from tessella.densities.classes import LatentClasses
from tessella.densities.dimensionwise import DimensionwiseMixture
from tessella.densities.flow import Flow
from tessella.densities.mixture import DisjointMixture
from tessella.densities.ordinary_mixture import FlowMixture
from tessella.densities.zuko import ZukoDensity

__all__ = [
    "BASES",
    "Ball",
    "Density",
    "DimensionwiseMixture",
    "DisjointMixture",
    "Flow",
    "FlowMixture",
    "Gaussian",
    "LatentClasses",
    "Logistic",
    "StudentT",
    "ZukoDensity",
    "conditional_flow",
    "flat_flow",
    "token_flow",
]
