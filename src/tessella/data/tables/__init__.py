"""Tables: what their columns mean, and those of the catalogue, found or fetched, verified and split."""

from tessella.data.tables.columns import Column, learn
from tessella.data.tables.encoding import Encoding
from tessella.data.tables.loading import load_table
from tessella.data.tables.quantized import QUANTIZED
from tessella.data.tables.registry import TABLES
from tessella.data.tables.shape import TableShape
from tessella.data.tables.table import Table, table_of

__all__ = ["QUANTIZED", "TABLES", "Column", "Encoding", "Table", "TableShape", "learn", "load_table", "table_of"]
