"""What columns tell about each other, against likelihoods and against a table whose columns are known."""

import numpy as np
import pandas as pd
import pytest
import torch
from tests.estimators.frames_for_tests import cell_flow, small_flow

from tessella.estimators.overview.telling import telling
from tessella.estimators.questions import told, variable

NAMES = ["letter", "copy", "size", "coin"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """The copy is a function of the letter, the size nearly; the coin has nothing to do with either."""
    rng = np.random.default_rng(0)
    letter = rng.choice(list("abcd"), 2000)
    size = 10.0 * pd.Series(letter).map(dict(zip("abcd", range(4), strict=True))) + rng.standard_normal(2000)
    coin = rng.choice(["heads", "tails"], 2000)
    return pd.DataFrame({"letter": letter, "copy": pd.Series(letter).str.upper(), "size": size, "coin": coin})


@pytest.fixture(scope="module")
def flow(frame):
    return small_flow(density="autoregressive", width=16, max_steps=800, learning_rate=1e-2).fit(frame)


@pytest.fixture(scope="module")
def drawn(flow) -> torch.Tensor:
    with torch.no_grad():
        return flow.encoding_.join(*flow.model_.sample(1000))


def test_functions_tell_all_and_coins_nothing(flow, drawn):
    found = telling(flow.model_, flow.encoding_, drawn, NAMES)
    share = pd.DataFrame(found["share"], NAMES, NAMES)
    together = dict(zip(found["names"], found["together"], strict=True))
    assert share.loc["letter", "copy"] > 0.85
    assert share.loc["size", "letter"] > 0.75
    assert share.loc["letter", "size"] < share.loc["letter", "copy"]  # a number has more to be told about
    assert share.loc["coin"].max() < 0.05
    assert share["coin"].max() < 0.05
    assert together["copy"] > 0.9
    assert together["coin"] < 0.1


def test_it_is_the_mean_of_log_likelihood_ratios(flow, drawn):
    """I(letter; copy) = E log p(copy | letter) / p(copy)."""
    found = telling(flow.model_, flow.encoding_, drawn, ["letter", "copy"])
    letter, copy = (variable(flow.encoding_, flow.encoding_.index(name)) for name in ("letter", "copy"))

    def log_prob(known: list[int]) -> torch.Tensor:
        with torch.no_grad():
            walk = told(flow.model_, flow.encoding_.split(drawn), known)
            walk.ask(copy)
            return walk.log_prob(copy).double()

    information, entropy = (log_prob([letter]) - log_prob([])).mean(), -log_prob([]).mean()
    assert found["share"][0][1] == pytest.approx(float(information / entropy), abs=0.03)


def test_flows_through_cells_do_not_say(frame):
    cells = cell_flow(max_steps=2).fit(frame[:200])
    rows = cells.encoding_.join(*cells._encode(frame[:200]))
    assert telling(cells.model_, cells.encoding_, rows, NAMES) is None
