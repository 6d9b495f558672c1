"""Tables of real numbers, preprocessed and split as published."""

from tessella.data.vectors.loading import VectorTable, available_vectors, load_vectors
from tessella.data.vectors.registry import VECTORS

__all__ = ["VECTORS", "VectorTable", "available_vectors", "load_vectors"]
