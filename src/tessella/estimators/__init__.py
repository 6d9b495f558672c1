"""scikit-learn style objects over data frames: rows in, scores and rows out."""

from tessella.estimators.tabular import Embedding, TabularFlow

__all__ = ["Embedding", "TabularFlow"]
