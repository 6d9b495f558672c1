"""Tables, vectors, sets, texts, toys: found or fetched, verified, split, encoded; and the sources of their batches."""

from tessella.data.catalogue import Check, Listing, available, check, get
from tessella.data.itemsets import ITEMSETS, ItemSets, SetShape, load_itemsets, load_transactions
from tessella.data.sources import PaddedSets, Rows, Windows
from tessella.data.tables import QUANTIZED, TABLES, Column, Encoding, Table, TableShape, load_table, table_of
from tessella.data.texts import TEXTS, Alphabet, Text, load_text, text_of_file
from tessella.data.toys import TOYS, Quantized, quantized_toy
from tessella.data.vectors import (
    VECTORS,
    SymmetricPatches,
    Symmetries,
    VectorTable,
    augmented,
    load_vectors,
    patch_maps,
)

__all__ = [
    "ITEMSETS",
    "QUANTIZED",
    "TABLES",
    "TEXTS",
    "TOYS",
    "VECTORS",
    "Alphabet",
    "Check",
    "Column",
    "Encoding",
    "ItemSets",
    "Listing",
    "PaddedSets",
    "Quantized",
    "Rows",
    "SetShape",
    "SymmetricPatches",
    "Symmetries",
    "Table",
    "TableShape",
    "Text",
    "VectorTable",
    "Windows",
    "augmented",
    "available",
    "check",
    "get",
    "load_itemsets",
    "load_table",
    "load_text",
    "load_transactions",
    "load_vectors",
    "patch_maps",
    "quantized_toy",
    "table_of",
    "text_of_file",
]
