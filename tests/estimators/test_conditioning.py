"""Rows given some of their values: as the enumerated conditional has them, or an error. Rare conditions included."""

import random
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from tests.estimators.frames_for_tests import cell_flow, small_flow

from tessella.estimators import conditioning, learners
from tessella.estimators.coding import CodedRows
from tessella.estimators.questions import Given
from tessella.models import AutoregressiveTable, SemiDiscrete

COUNTS = (4, 3, 5, 2)
ALL = torch.tensor(list(product(*map(range, COUNTS)))).double()
RARE = 0.005  # of the rows: all of their columns have values that are otherwise rare, too
ROWS = 500
EXACTLY = ("mixture", "autoregressive")  # answer everything


def table(rows: int = 4000) -> np.ndarray:
    """Columns that follow the first, and a few rows in which all columns say that they are others."""
    rng = np.random.default_rng(0)
    a = rng.choice(3, rows, p=[0.6, 0.3, 0.1])
    b = np.where(rng.random(rows) < 0.8, a % 2, rng.integers(0, 2, rows))
    c = np.where(rng.random(rows) < 0.7, a, rng.integers(0, 4, rows))
    codes = np.stack([a, b, c, rng.integers(0, 2, rows)], 1)
    codes[rng.random(rows) < RARE] = [3, 2, 4, 1]
    return codes


@pytest.fixture(scope="module", params=["coupling", "blocks", "mixture", "autoregressive"])
def flow(request):
    """Trained for a moment. A flow through cells is kept, although the mixture that it began as is as good."""
    frame = pd.DataFrame(table(), columns=list("abcd")).astype(str)
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "coupling":
            patch.setattr(learners, "_better", lambda mixture, validation, seed, learned: learned)
        longer = {"max_steps": 300, "learning_rate": 0.01}
        make = {
            "blocks": lambda: small_flow(density="blocks", groups=4, **longer),
            "autoregressive": lambda: small_flow(density="autoregressive", **longer),
        }.get(request.param, lambda: cell_flow(components=24, max_steps=2))
        fitted = make().fit(frame)
    assert (fitted.density_, fitted.exact_) == (request.param, request.param != "coupling")
    return fitted


@pytest.fixture(scope="module")
def probabilities(flow):
    """Of all rows, exactly; of the flow through cells by a bound that is nearly tight."""
    with torch.no_grad():
        torch.manual_seed(0)
        found = flow.model_.log_prob(ALL.long(), samples=300).double().exp()
    assert 0.97 < float(found.sum()) < 1.01
    return found / found.sum()


def conditions(number: int) -> list[dict[int, list[float]]]:
    """Random ones on one to three columns, and the rare values, alone and together."""
    choice = random.Random(0)
    some = [choice.sample(range(4), choice.randint(1, 3)) for _ in range(number)]
    return [{j: [float(choice.randrange(COUNTS[j]))] for j in columns} for columns in some] + [
        {0: [3.0]},
        {1: [2.0]},
        {2: [4.0]},
        {0: [3.0], 2: [4.0]},
        {0: [3.0], 1: [0.0]},
    ]


def distance(rows: torch.Tensor, expected: torch.Tensor) -> float:
    """Total variation between the shares of rows and a distribution over `ALL`."""
    shares = torch.stack([(rows == row).all(1).double().mean() for row in ALL])
    return float((shares - expected).abs().sum() / 2)


def truth(flow, given, joint: torch.Tensor) -> torch.Tensor:
    """Over `ALL`, from the joint where it meets what is given; given columns come first where there is an order."""
    if not isinstance(flow.model_, AutoregressiveTable):
        return joint / joint.sum()
    density, found = flow.model_.density, []
    with torch.no_grad():
        for member in flow.model_.some_orders(flow.model_.orders):
            order = torch.tensor([*sorted(given), *(column for column in member if column not in given)])
            here = density(density.place(ALL.long()), order.expand(len(ALL), -1)).sum(-1).double().exp() * (joint > 0)
            found.append(here / here.sum())
    return torch.stack(found).mean(0)


def answer(flow, given) -> conditioning.Conditioned | None:
    """Rows, or None if the conditions are called too rare."""
    try:
        return conditioning.sample_given(flow.model_, flow.encoding_, Given(given, {}), ROWS)
    except ValueError as error:
        if "too rare to answer" not in str(error):
            raise
        return None


def test_rows_follow_the_enumerated_conditional_as_well_as_they_say(flow, probabilities):
    """No farther from it than as many independent draws as the effective sample size says; errors only when rare."""
    refused = 0
    for given in conditions({"coupling": 6, "blocks": 16}.get(flow.density_, 40)):
        meets = torch.stack([ALL[:, j] == value[0] for j, value in given.items()]).all(0)
        mass = float(probabilities[meets].sum())
        conditional = truth(flow, given, torch.where(meets, probabilities, 0))
        torch.manual_seed(1)
        if (found := answer(flow, given)) is None:
            assert mass < 3 * conditioning.FEWEST / conditioning.MOST_DRAWS, given
            refused += 1
            continue
        assert bool(meets[((found.rows[:, None] == ALL).all(-1)).nonzero()[:, 1]].all())
        assert 0 < found.effective_sample_size <= ROWS
        worth = max(1, int(found.effective_sample_size))
        draws = [ALL[torch.multinomial(conditional, worth, replacement=True)] for _ in range(5)]
        independent = np.mean([distance(drawn, conditional) for drawn in draws])
        assert distance(found.rows, conditional) < 1.5 * independent + 0.05, (given, mass, found.effective_sample_size)
    assert refused < 10
    if flow.density_ in EXACTLY:
        assert refused == 0


def test_weights_that_found_nothing_are_not_believed(flow, monkeypatch):
    """The failure this guards against: equally tiny weights, a fine effective sample size, and all rows wrong."""
    if flow.density_ in EXACTLY:
        pytest.skip("what is given comes first, nothing is weighed")
    torch.manual_seed(0)
    wrong = torch.tensor([[3.0, 0, 0, 0]]).double().repeat(4000, 1)
    for kind in (conditioning.FlowConditions, conditioning.CodedConditions):
        monkeypatch.setattr(kind, "proposals", lambda self, count: (wrong, torch.full((4000,), -20.0).double()))
    monkeypatch.setattr(conditioning, "MOST_DRAWS", 20_000)
    found = conditioning.sample_given(flow.model_, flow.encoding_, Given({0: [3.0]}, {}), 400)
    assert found.effective_sample_size < 400  # the draws that meet it, again and again, and it says so
    assert not (found.rows == wrong[0]).all(1).double().mean() > 0.5
    with pytest.raises(ValueError, match=r"too rare to answer, (about|fewer than) 1 in [\d,]+: \d of 20,000 rows"):
        conditioning.sample_given(flow.model_, flow.encoding_, Given({0: [3.0], 1: [0.0], 2: [0.0], 3: [0.0]}, {}), 400)


def test_numbers_are_given_where_rows_come_near_and_refused_where_none_do(monkeypatch):
    rng = np.random.default_rng(0)
    kind = rng.choice(["low", "high"], 600, p=[0.8, 0.2])
    frame = pd.DataFrame({"kind": kind, "x": np.where(kind == "low", 0, 10) + rng.standard_normal(600)})
    flow = cell_flow(max_steps=60, learning_rate=0.01, samples=16).fit(frame)
    assert isinstance(flow.model_, SemiDiscrete)
    high = flow.sample(200, {"x": 10.0}, random_state=0)
    assert (high["kind"] == "high").mean() > 0.6  # of all rows 0.2
    assert set(high["x"]) == {10.0}
    monkeypatch.setattr(conditioning.FlowConditions, "draws", lambda self, count: self.row[:0])
    with pytest.raises(ValueError, match="fewer than 1 in 13,333: 0 of 40,000 rows that the model drew come near them"):
        flow.sample(200, {"x": 5.0, "kind": "high"}, random_state=0)


def test_a_model_of_categories_alone_has_no_cells(flow):
    assert isinstance(flow.model_, CodedRows | AutoregressiveTable) == flow.exact_
    assert flow.embedding("c").positions.shape[0] == 5
