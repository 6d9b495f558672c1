"""Invertible maps with their log-determinants. One contract: `Bijection`."""

from tessella.bijections.actnorm import ActNorm
from tessella.bijections.affine import CellAffine, ContextAffine
from tessella.bijections.base import Bijection, BijectionTransform
from tessella.bijections.cell import CellBijection
from tessella.bijections.cell_coupling import CellBumps, CellCoupling
from tessella.bijections.chain import Chain, Invert
from tessella.bijections.continuous import ContinuousFlow
from tessella.bijections.coupling import Coupling, VariableCoupling, partitions, variable_groups, variable_halves
from tessella.bijections.dopri5 import SolverError
from tessella.bijections.elementwise import AFFINE, Elementwise, LogisticMixture
from tessella.bijections.flatten import Flattened
from tessella.bijections.items import ItemNetwork, Items
from tessella.bijections.linear import LinearLU
from tessella.bijections.spline import RationalQuadratic
from tessella.bijections.squashing import SQUASHINGS, Profile, Squashing, power, profile_of

__all__ = [
    "AFFINE",
    "SQUASHINGS",
    "ActNorm",
    "Bijection",
    "BijectionTransform",
    "CellAffine",
    "CellBijection",
    "CellBumps",
    "CellCoupling",
    "Chain",
    "ContextAffine",
    "ContinuousFlow",
    "Coupling",
    "Elementwise",
    "Flattened",
    "Invert",
    "ItemNetwork",
    "Items",
    "LinearLU",
    "LogisticMixture",
    "Profile",
    "RationalQuadratic",
    "SolverError",
    "Squashing",
    "VariableCoupling",
    "partitions",
    "power",
    "profile_of",
    "variable_groups",
    "variable_halves",
]
