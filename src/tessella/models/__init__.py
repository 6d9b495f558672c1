"""Likelihood models of discrete data."""

from tessella.models.build import SemiDiscreteConfig, build
from tessella.models.semidiscrete import SemiDiscrete

__all__ = ["SemiDiscrete", "SemiDiscreteConfig", "build"]
