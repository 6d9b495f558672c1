"""Invertible maps with their log-determinants. One contract: `Bijection`."""

from tessella.bijections.actnorm import ActNorm
from tessella.bijections.base import Bijection, BijectionTransform
from tessella.bijections.cell import CellBijection
from tessella.bijections.chain import Chain, Invert
from tessella.bijections.squashing import SQUASHINGS, Squashing

__all__ = ["SQUASHINGS", "ActNorm", "Bijection", "BijectionTransform", "CellBijection", "Chain", "Invert", "Squashing"]
