"""Tables of hundreds of columns, and columns of thousands of categories."""

import numpy as np
import pandas as pd
import pytest
import torch

from tessella.baselines.choosing import LARGEST, fit_mixture
from tessella.baselines.trees import mutual_information
from tessella.estimators import TabularFlow
from tessella.estimators.overview.gathering import gather


def wide(columns: int, rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(columns)]
    values = [rng.choice(list("abc"), rows) if i % 4 else rng.normal(size=rows) for i in range(columns)]
    return pd.DataFrame(dict(zip(names, values, strict=True)))


def test_information_between_pairs_is_that_of_each_pair_alone(monkeypatch):
    """H(a) + H(b) - H(a, b), whatever is counted at once, densely or not."""
    counts, generator = (2, 700, 3, 900, 5), torch.Generator().manual_seed(0)
    codes = torch.stack([torch.randint(count, (80,), generator=generator) for count in counts], 1)

    def entropy(columns: list[int]) -> float:
        share = codes[:, columns].unique(dim=0, return_counts=True)[1].double() / len(codes)
        return float(-(share * share.log()).sum())

    pairs = [[entropy([i]) + entropy([j]) - entropy([i, j]) for j in range(5)] for i in range(5)]
    expected = torch.tensor(pairs, dtype=torch.float64)
    torch.testing.assert_close(mutual_information(codes, counts), expected)
    monkeypatch.setattr("tessella.baselines.trees.KEYS", 1)
    torch.testing.assert_close(mutual_information(codes, counts), expected)


def test_hundreds_of_columns_are_fitted_and_scored():
    table = wide(300, 40)
    flow = TabularFlow(width=8, layers=1, max_steps=1, batch_size=8, density="autoregressive", random_state=0)
    flow.set_params(device="cpu", threads=1, progress=False).fit(table)
    assert np.isfinite(flow.score_samples(table[:4])).all()
    assert flow.sample(2).shape == (2, 300)


def test_too_many_columns_are_refused_with_advice():
    with pytest.raises(ValueError, match=r"columns: got 2,001; expected at most 2,000, .*choose the columns"):
        TabularFlow(progress=False).fit(np.zeros((2, 2001)))


def test_a_mixture_of_many_categories_stays_small():
    """More components would be better: the two columns are one."""
    counts = (LARGEST // 16, 2)
    column = torch.arange(200) % 40
    rows = torch.stack([column, column % 2], 1)
    assert fit_mixture(counts, rows, rows, seed=0).components == 1 + 1


def test_the_report_asks_a_wide_model_about_few_columns(monkeypatch):
    for name, value in {"ASKED": 120, "EXPLAINED": 50, "CELLS": 6000}.items():
        monkeypatch.setattr(f"tessella.estimators.overview.gathering.{name}", value)
    monkeypatch.setattr("tessella.estimators.overview.gathering.compare", lambda *_: [])
    table = wide(60, 60)
    flow = TabularFlow(width=8, layers=1, max_steps=1, batch_size=8, density="autoregressive", random_state=0)
    overview = gather(flow.set_params(device="cpu", threads=1, progress=False).fit(table), table)
    assert overview.telling is not None
    assert (len(overview.telling["names"]), len(overview.association["names"])) == (2, 30)
    assert (overview.sampled_rows, overview.odd_rows[0]["reasons"]) == (100, [])
