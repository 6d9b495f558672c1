"""Why a row is odd: what each of its columns does to its likelihood."""

from typing import Any

import torch
from torch import Tensor

from tessella import checks
from tessella.data import Encoding
from tessella.estimators.marginals import Marginals
from tessella.estimators.network import Model, log_likelihood
from tessella.estimators.questions import answers, excess_surprise, surprise
from tessella.models.bound import log_mean_exp
from tessella.models.restoring import sound
from tessella.training.randomness import derived_seed, fork_rng

REPLACEMENTS = 16
REASONS = 3


def oddness(model: Model, encoding: Encoding, rows: Tensor, scores: Tensor) -> Tensor:
    """What rows (B, G + R) are ranked by, in nats, (B): by `surprise` where the model can be asked, else by -score."""
    if not answers(model):
        return -scores.double()
    with sound("anomalies"):
        found = surprise(model, encoding, rows)
        checks.finite("surprise", found)
    return found


def contributions(model: Model, encoding: Encoding, rows: Tensor, scores: Tensor, samples: int, seed: int) -> Tensor:
    """How much each column does to make a row odd, in nats, (B, columns); 0 for a column with a single value.

    Exactly, by `excess_surprise`, where the model has conditionals of every column given all others; else by
    replacing values.

    Args:
        model: that scores.
        encoding: of its columns.
        rows: odd rows, (B, G + R).
        scores: their log-likelihood, (B).
        samples: of the bound.
        seed: of what replaces values, and of the bound's noise.
    """
    if not answers(model):
        with sound("anomalies"):
            return _by_replacing(model, encoding, rows, scores, samples, seed)
    result = torch.zeros(len(rows), len(encoding.columns), dtype=torch.float64)
    with sound("anomalies"):
        for column in range(len(encoding.columns)):
            if encoding.tokens(column):
                result[:, column] = excess_surprise(model, encoding, rows, column)
        checks.finite("contributions", result)
    return result


def _by_replacing(model: Model, encoding: Encoding, rows: Tensor, scores: Tensor, samples: int, seed: int) -> Tensor:
    """log 1/M sum_m P(row with v_m in place of its value) - log P(row), v_m ~ the column's marginal: (B, columns).

    How much likelier the row would be with an ordinary value in that column: large for the columns that make it odd,
    about 0 for those that fit, negative for those that fit unusually well.
    """
    marginals = Marginals(model, encoding)
    result = torch.zeros(len(rows), len(encoding.columns), dtype=torch.float64)
    with fork_rng(torch.device("cpu")):
        torch.manual_seed(derived_seed(seed, "replacements"))
        for column in range(len(encoding.columns)):
            if tokens := encoding.tokens(column):
                replaced = rows.repeat(REPLACEMENTS, 1)
                replaced[:, tokens] = marginals.draw(column, REPLACEMENTS).repeat_interleave(len(rows), 0).to(rows)
                bound = log_likelihood(model, encoding.split(replaced), samples, seed).view(REPLACEMENTS, len(rows))
                result[:, column] = log_mean_exp(bound) - scores
    return result


def reasons(encoding: Encoding, shares: Tensor) -> dict[str, list[Any]]:
    """The columns with the largest contributions (B, columns): column_1, contribution_1, column_2, ..."""
    values, order = shares.sort(1, descending=True)
    found: dict[str, list[Any]] = {}
    for place in range(min(REASONS, len(encoding.columns))):
        found[f"column_{place + 1}"] = [encoding.columns[i].name for i in order[:, place].tolist()]
        found[f"contribution_{place + 1}"] = values[:, place].tolist()
    return found
