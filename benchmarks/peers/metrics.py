"""How close drawn rows are to held-out ones, and whether they are copies; the same code for every method."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from benchmarks.peers.views import TableView, is_numeric, numbers, words
from tessella.baselines.trees import mutual_information

FOLDS = 5
TREES = 300
RESAMPLES = 30
SHRINKAGE = 1.0  # of what a leaf says. Without, leaves of rare categories with hardly any doubt left say huge numbers.


@dataclass(frozen=True)
class Measured:
    """A value and its standard error."""

    value: float
    error: float


def two_sample(view: TableView, real: pa.Table, drawn: pa.Table, seed: int = 0) -> Measured:
    """AUC of gradient-boosted trees that tell drawn rows from real ones, cross-validated: 0.5 if they cannot."""
    count = min(len(real), len(drawn))
    rows = np.concatenate([view.features(table[:count]) for table in (real, drawn)])
    labels = np.repeat([0, 1], count)
    trees = HistGradientBoostingClassifier(
        max_iter=TREES, early_stopping=True, categorical_features=view.categorical(), random_state=seed
    )
    found = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(rows, labels):
        trees.fit(rows[train], labels[train])
        found.append(roc_auc_score(labels[test], trees.predict_proba(rows[test])[:, 1]))
    return Measured(float(np.mean(found)), float(np.std(found, ddof=1) / FOLDS**0.5))


def utility(view: TableView, target: str, learned: pa.Table, held_out: pa.Table, seed: int = 0) -> Measured:
    """How well trees that learned from some rows predict a column of held-out ones; rows without it are left out.

    R^2 of a number; of categories the AUC of each against the rest, on average over those of the training rows.
    """
    learned, held_out = (table.filter(table[target].is_valid()) for table in (learned, held_out))
    rows, asked = (view.features(table, without=target) for table in (learned, held_out))
    settings = {"categorical_features": view.categorical(without=target), "random_state": seed}
    if view.columns[target].numeric:
        regressor = HistGradientBoostingRegressor(early_stopping=False, **settings).fit(rows, numbers(learned[target]))
        return _resampled(r2_score, numbers(held_out[target]), regressor.predict(asked), seed)
    trees = HistGradientBoostingClassifier(early_stopping=False, l2_regularization=SHRINKAGE, **settings)
    classifier = trees.fit(rows, _objects(learned[target]))
    categories = view.columns[target].categories.field("values").to_numpy(zero_copy_only=False)
    said = dict(zip(classifier.classes_, classifier.predict_proba(asked).T, strict=True))
    never = np.zeros(len(asked))  # what the drawn rows lack
    predicted = np.stack([said.get(category, never) for category in categories], axis=1)
    return _resampled(_mean_auc, _objects(held_out[target])[:, None] == categories, predicted, seed)


def dependence(view: TableView, real: pa.Table, drawn: pa.Table) -> float:
    """Mean over pairs of columns of the difference in I(a; b) / sqrt(H(a) H(b)), 0 if drawn rows are like real ones."""
    count = min(len(real), len(drawn))  # what is measured grows with fewer rows
    first, second = (_associations(view.codes(table[:count])) for table in (real, drawn))
    pairs = np.triu_indices(len(first), k=1)
    return float(np.abs(first - second)[pairs].mean())


def copies(train: pa.Table, rows: pa.Table) -> float:
    """The share of rows that are equal to a training row in every column; missing values are equal to each other."""
    keys = np.zeros(len(train) + len(rows), dtype=np.int64)
    for name in train.column_names:
        codes = _equal(train[name], rows[name])
        keys = np.unique(keys * (codes.max() + 1) + codes, return_inverse=True)[1]
    return float(np.isin(keys[len(train) :], keys[: len(train)]).mean())


def _equal(*columns: pa.ChunkedArray) -> np.ndarray:
    """The same integer for the same value, whatever types the columns have it in."""
    read = numbers if is_numeric(columns[0]) else words
    values = pa.array(np.concatenate([np.asarray(read(column)) for column in columns]), from_pandas=True)
    return np.asarray(values.dictionary_encode().indices.fill_null(-1)) + 1


def _associations(codes: np.ndarray) -> np.ndarray:
    information = mutual_information(torch.from_numpy(codes), (codes.max(axis=0) + 1).tolist()).numpy()
    entropy = information.diagonal()
    normalised: np.ndarray = information / np.sqrt(np.outer(entropy, entropy)).clip(1e-12)
    return normalised


def _mean_auc(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Over the categories that some rows have and others do not."""
    mixed = truth.any(axis=0) & ~truth.all(axis=0)
    return float(roc_auc_score(truth[:, mixed], predicted[:, mixed], average="macro"))


def _resampled(
    score: Callable[[np.ndarray, np.ndarray], float], truth: np.ndarray, predicted: np.ndarray, seed: int
) -> Measured:
    """The score of all rows, and its deviation over rows drawn from them with replacement."""
    random = np.random.default_rng(seed)
    again = (random.integers(0, len(truth), len(truth)) for _ in range(RESAMPLES))
    spread = np.std([score(truth[rows], predicted[rows]) for rows in again], ddof=1)
    return Measured(float(score(truth, predicted)), float(spread))


def _objects(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(words(column))
