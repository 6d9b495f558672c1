"""Tables larger than memory: read in pieces, once to learn what the columns are, then again and again to train."""

from tessella.estimators.streaming.memory import budget, estimate
from tessella.estimators.streaming.opening import opened
from tessella.estimators.streaming.parquet import ParquetTable, RowGroups
from tessella.estimators.streaming.pieces import Pieces
from tessella.estimators.streaming.rows import TableStream
from tessella.estimators.streaming.survey import Survey, survey

__all__ = ["ParquetTable", "Pieces", "RowGroups", "Survey", "TableStream", "budget", "estimate", "opened", "survey"]
