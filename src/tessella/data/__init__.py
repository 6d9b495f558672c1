"""Tables, vectors, texts and toys: found or fetched, verified, split, encoded; and the sources of their batches."""

from tessella.data.catalogue import Check, Listing, available, check, get
from tessella.data.sources import PaddedSets, Rows, Windows
from tessella.data.tables import QUANTIZED, TABLES, Column, Encoding, Table, TableShape, load_table, table_of
from tessella.data.texts import TEXTS, Alphabet, Text, load_text, text_of_file
from tessella.data.toys import TOYS, Quantized, quantized_toy
from tessella.data.vectors import VECTORS, VectorTable, load_vectors

__all__ = [
    "QUANTIZED",
    "TABLES",
    "TEXTS",
    "TOYS",
    "VECTORS",
    "Alphabet",
    "Check",
    "Column",
    "Encoding",
    "Listing",
    "PaddedSets",
    "Quantized",
    "Rows",
    "Table",
    "TableShape",
    "Text",
    "VectorTable",
    "Windows",
    "available",
    "check",
    "get",
    "load_table",
    "load_text",
    "load_vectors",
    "quantized_toy",
    "table_of",
    "text_of_file",
]
