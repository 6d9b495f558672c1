"""Invertible maps with their log-determinants. One contract: `Bijection`."""

from tessella.bijections.actnorm import ActNorm
from tessella.bijections.affine import ContextAffine
from tessella.bijections.base import Bijection, BijectionTransform
from tessella.bijections.cell import CellBijection
from tessella.bijections.chain import Chain, Invert
from tessella.bijections.coupling import AffineCoupling, VariableCoupling, partitions, variable_halves
from tessella.bijections.flatten import Flattened
from tessella.bijections.squashing import SQUASHINGS, Squashing

__all__ = [
    "SQUASHINGS",
    "ActNorm",
    "AffineCoupling",
    "Bijection",
    "BijectionTransform",
    "CellBijection",
    "Chain",
    "ContextAffine",
    "Flattened",
    "Invert",
    "Squashing",
    "VariableCoupling",
    "partitions",
    "variable_halves",
]
