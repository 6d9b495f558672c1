"""Tables, toys and their schemas: found or fetched, verified, split, encoded."""

from tessella.data.catalogue import Check, Listing, available, check, get
from tessella.data.registry import TABLES
from tessella.data.schema import Schema, Variable
from tessella.data.tables import Table, load_table
from tessella.data.toys import TOYS, Quantized, quantized_toy

__all__ = [
    "TABLES",
    "TOYS",
    "Check",
    "Listing",
    "Quantized",
    "Schema",
    "Table",
    "Variable",
    "available",
    "check",
    "get",
    "load_table",
    "quantized_toy",
]
