"""Probability densities on R^n, or on (N, D) points. One contract: `Density`."""

from tessella.densities.base import Density
from tessella.densities.basic import BASES, Ball, Gaussian, Logistic, StudentT
from tessella.densities.build import conditional_flow, flat_flow, token_flow
from tessella.densities.flow import Flow
from tessella.densities.zuko import ZukoDensity

__all__ = [
    "BASES",
    "Ball",
    "Density",
    "Flow",
    "Gaussian",
    "Logistic",
    "StudentT",
    "ZukoDensity",
    "conditional_flow",
    "flat_flow",
    "token_flow",
]
