"""Questions to a fitted table: rows given anything, what is missing, what a column will be."""

from tessella.estimators.questions.balance import balanced, strata
from tessella.estimators.questions.given import Given, read_given
from tessella.estimators.questions.imputing import impute
from tessella.estimators.questions.predicting import excess_surprise, medians, probabilities, surprise
from tessella.estimators.questions.reading import read_rows
from tessella.estimators.questions.walks import Exact, answers, exact, told, variable

__all__ = [
    "Exact",
    "Given",
    "answers",
    "balanced",
    "exact",
    "excess_surprise",
    "impute",
    "medians",
    "probabilities",
    "read_given",
    "read_rows",
    "strata",
    "surprise",
    "told",
    "variable",
]
