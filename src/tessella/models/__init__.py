"""Likelihood models of discrete data."""

from tessella.models.semidiscrete import SemiDiscrete
from tessella.models.tables import SemiDiscreteConfig, build

__all__ = ["SemiDiscrete", "SemiDiscreteConfig", "build"]
