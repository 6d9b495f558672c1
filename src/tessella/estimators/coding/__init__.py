"""Numbers as codes, and rows by models that know codes only: exact likelihoods of mixed tables."""

from tessella.data.tables.bins import NumberBins, NumberDistribution, smoothed
from tessella.estimators.coding.codes import Codes, number_distributions
from tessella.estimators.coding.rows import CodedRows, CodedTraining

__all__ = [
    "CodedRows",
    "CodedTraining",
    "Codes",
    "NumberBins",
    "NumberDistribution",
    "number_distributions",
    "smoothed",
]
