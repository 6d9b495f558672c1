"""Tables of real numbers, preprocessed and split as published."""

from tessella.data.vectors.loading import VectorTable, load_vectors
from tessella.data.vectors.registry import VECTORS
from tessella.data.vectors.symmetries import SymmetricPatches, Symmetries, augmented, patch_maps

__all__ = [
    "VECTORS",
    "SymmetricPatches",
    "Symmetries",
    "VectorTable",
    "augmented",
    "load_vectors",
    "patch_maps",
]
