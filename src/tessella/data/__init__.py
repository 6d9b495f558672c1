"""Tables, toys and their schemas: found or fetched, verified, split, encoded."""

from tessella.data.catalogue import Check, Listing, available, check, get
from tessella.data.sources import PaddedSets, Rows, Windows
from tessella.data.tables.loading import Table, load_table
from tessella.data.tables.registry import TABLES
from tessella.data.tables.schema import Schema, Variable
from tessella.data.toys import TOYS, Quantized, quantized_toy
from tessella.data.vectors.loading import VectorTable, available_vectors, load_vectors
from tessella.data.vectors.registry import VECTORS

__all__ = [
    "TABLES",
    "TOYS",
    "VECTORS",
    "Check",
    "Listing",
    "PaddedSets",
    "Quantized",
    "Rows",
    "Schema",
    "Table",
    "Variable",
    "VectorTable",
    "Windows",
    "available",
    "available_vectors",
    "check",
    "get",
    "load_table",
    "load_vectors",
    "quantized_toy",
]
