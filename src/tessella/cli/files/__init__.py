"""Tables in files: CSV as people write it, and Parquet."""

from tessella.cli.files.dialect import CsvOptions
from tessella.cli.files.reading import KINDS, TableFile, read_table
from tessella.cli.files.schema import Schema
from tessella.cli.files.writing import Formulas, escaped, is_formula, replacing, with_formulas, write_table, writing

__all__ = [
    "KINDS",
    "CsvOptions",
    "Formulas",
    "Schema",
    "TableFile",
    "escaped",
    "is_formula",
    "read_table",
    "replacing",
    "with_formulas",
    "write_table",
    "writing",
]
