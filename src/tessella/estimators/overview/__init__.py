"""Everything that a report shows of a fitted table, as plain data: `overview.json` beside the model."""

from tessella.estimators.overview.document import FILE, FORMAT, Overview
from tessella.estimators.overview.gathering import gather

__all__ = ["FILE", "FORMAT", "Overview", "gather"]
