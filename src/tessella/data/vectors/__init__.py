"""Tables of real numbers, preprocessed and split as published."""

from tessella.data.vectors.loading import VectorTable, load_vectors
from tessella.data.vectors.registry import VECTORS

__all__ = ["VECTORS", "VectorTable", "load_vectors"]
