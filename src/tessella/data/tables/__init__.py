"""Tables: what their columns mean, and those of the catalogue, found or fetched, verified and split."""

from tessella.data.tables.loading import Table, load_table
from tessella.data.tables.registry import TABLES
from tessella.data.tables.schema import Schema, Variable

__all__ = ["TABLES", "Schema", "Table", "Variable", "load_table"]
