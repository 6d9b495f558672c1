"""scikit-learn style objects over data frames: rows in, scores and rows out."""

from tessella.estimators.mixture_flow import MixtureFlow
from tessella.estimators.set_flow import SetFlow
from tessella.estimators.tabular_flow import Embedding, TabularFlow

__all__ = ["Embedding", "MixtureFlow", "SetFlow", "TabularFlow"]
