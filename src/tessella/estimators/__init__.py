"""scikit-learn style objects over data frames: rows in, scores and rows out."""

from tessella.estimators.mixture import MixtureFlow
from tessella.estimators.tabular import Embedding, TabularFlow

__all__ = ["Embedding", "MixtureFlow", "TabularFlow"]
