"""Tables, toys and their schemas: found or fetched, verified, split, encoded."""

from tessella.data.catalogue import Check, Listing, available, check, get
from tessella.data.continuous import ContinuousTable, available_continuous, load_continuous
from tessella.data.continuous_registry import CONTINUOUS
from tessella.data.registry import TABLES
from tessella.data.schema import Schema, Variable
from tessella.data.sources import PaddedSets, Rows, Windows
from tessella.data.tables import Table, load_table
from tessella.data.toys import TOYS, Quantized, quantized_toy

__all__ = [
    "CONTINUOUS",
    "TABLES",
    "TOYS",
    "Check",
    "ContinuousTable",
    "Listing",
    "PaddedSets",
    "Quantized",
    "Rows",
    "Schema",
    "Table",
    "Variable",
    "Windows",
    "available",
    "available_continuous",
    "check",
    "get",
    "load_continuous",
    "load_table",
    "quantized_toy",
]
