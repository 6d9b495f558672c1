"""What one would use instead: exact, normalised likelihoods of mixed rows, and honest about what columns tell."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from tessella.baselines import ChowLiu
from tessella.estimators.bins import NumberBins
from tessella.estimators.columns import learn
from tessella.estimators.encoding import Encoding
from tessella.estimators.rivals import RIVALS, fit_rivals

ROWS = 160
KINDS = {"colour": "categorical", "name": "categorical", "count": "count", "weight": "continuous"}
NUMBERS = {
    "normal": np.random.default_rng(1).standard_normal(ROWS),
    "heavy": np.random.default_rng(2).standard_cauchy(ROWS),
    "repeated": np.append(np.random.default_rng(3).exponential(1, ROWS - 80), [0.0] * 60 + [1e-15] * 20),
    "two values": np.array([3.0] * 50 + [7.0] * 50),
    "single value in training": np.array([3.0] * 50),
}


def encoded(**columns: list) -> tuple[Encoding, torch.Tensor]:
    learned = [learn(name, values, KINDS[name], None) for name, values in columns.items()]
    encoding = Encoding(tuple(learned))
    return encoding, encoding.encode(list(columns.values()))


@cache
def table(number: str) -> tuple[Encoding, torch.Tensor]:
    """The colour says the number; some of the numbers are missing."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue"], ROWS)
    mean = np.where(colour == "red", 9, 3)
    values = (rng.poisson(mean) if number == "count" else mean + rng.standard_normal(ROWS)).tolist()
    values = [None if gone else value for gone, value in zip(rng.random(ROWS) < 0.3, values, strict=True)]
    return encoded(colour=colour.tolist(), **{number: values})


@cache
def rivals(number: str):
    encoding, rows = table(number)
    return {rival.name: rival for rival in fit_rivals(encoding, rows[:120], rows[120:])}


@pytest.mark.parametrize("name", RIVALS)
def test_masses_of_all_rows_with_a_count_sum_to_one(name):
    far = 50_000
    present = [[colour, 1.0, float(v)] for colour in (0, 1) for v in range(-far, far)]
    every = torch.tensor(present + [[colour, 0.0, 0.0] for colour in (0, 1)], dtype=torch.float64)
    assert float(rivals("count")[name].log_prob(every).exp().sum()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("name", RIVALS)
def test_densities_of_all_rows_with_a_number_integrate_to_one(name):
    rival = rivals("weight")[name]

    def at(colour: int, present: int, weight: float) -> float:
        return float(rival.log_prob(torch.tensor([[colour, present, weight]], dtype=torch.float64)).exp())

    ends = [-np.inf, *rival.bins.numbers[0].edges.tolist(), np.inf]
    pieces = list(pairwise(ends))
    total = sum(quad(lambda v, c=colour: at(c, 1, v), *piece)[0] for colour in (0, 1) for piece in pieces)
    assert total + at(0, 0, 0.0) + at(1, 0, 0.0) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("number", ["count", "weight"])
def test_the_plain_models_rank_as_they_should(number):
    """The colour says the number, so models that join columns gain what the mutual information allows."""
    held_out = table(number)[1][120:]
    score = {name: float(rival.log_prob(held_out).mean()) for name, rival in rivals(number).items()}
    assert score["Chow-Liu tree"] > score["independent columns"] + 0.1
    assert score["latent classes"] > score["independent columns"] + 0.1


@pytest.mark.parametrize("kind", ["count", "continuous"])
@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("most", [1, 8, 32])
def test_every_bin_is_spread_over_its_own_part(kind, values, most):
    values = np.round(values) if kind == "count" else values
    column = learn("x", [*values.tolist(), 100.0], kind, None)
    bins = NumberBins.of(column, values, most)
    assert 1 <= bins.bins <= most
    assert (bins.edges.diff() > 0).all()
    edges = bins.edges.tolist()
    tails = [edges[0] - 1e9, edges[0] - 1.0, edges[-1] + 1.0, edges[-1] + 1e9]
    probes = torch.tensor([*edges, *values.tolist(), *tails])
    present = torch.ones(len(probes), dtype=torch.bool)
    assert bins.codes(probes, present)[-4:].tolist() == [bins.bins, bins.bins, bins.bins + 1, bins.bins + 1]
    assert (bins.codes(torch.from_numpy(values), present[: len(values)]) < bins.bins).all()
    assert bins.log_spread(probes, present).isfinite().all()
    for code, (start, end) in enumerate(pairwise(edges)):
        inside = torch.arange(start, end) if kind == "count" else torch.linspace(start, end, 9)[:-1]
        there = torch.ones(len(inside), dtype=torch.bool)
        assert (bins.codes(inside, there) == code).all()
        measure = 1.0 if kind == "count" else (end - start) / len(inside)
        assert float(bins.log_spread(inside, there).exp().sum() * measure) == pytest.approx(1)


def test_missing_numbers_have_a_bin_of_their_own():
    bins = NumberBins(torch.tensor([0.0, 1.0, 2.0]), unit=False)
    values, present = torch.tensor([0.5, 0.0]), torch.tensor([True, False])
    assert bins.codes(values, present).tolist() == [0, 4]
    assert bins.log_spread(values, present).tolist() == [0.0, 0.0]


def test_a_column_of_names_is_not_joined_to_another():
    """Two columns of 20,000 categories each, and a coin that one of them shows: a tree of three would be all chance."""
    coin = torch.arange(400) % 2
    rows = torch.stack([torch.arange(400) * 50, torch.arange(400).flip(0) * 50, coin, 1 - coin], 1)
    model = ChowLiu((20_000, 20_000, 2, 2)).fit(rows, largest_table=1000)
    assert model.parent.tolist()[:2] == [-1, -1]
    assert sorted(model.parent.tolist()[2:]) in ([-1, 2], [-1, 3])
    assert model.sample(5).shape == (5, 4)
    joint = [[0, 0, a, b] for a in (0, 1) for b in (0, 1)]
    alone = model.log_prob(torch.tensor(joint)).logsumexp(0)
    assert float(alone) == pytest.approx(2 * float(model.log_table[0]))


def test_a_column_of_names_does_not_spoil_the_tree():
    """The tree is offered a column that seems to tell everything; the validation rows say that it does not."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue"], 1200)
    count = rng.poisson(np.where(colour == "red", 30, 3)).tolist()
    names = rng.permutation([f"n{i % 600}" for i in range(1200)]).tolist()
    encoding, rows = encoded(colour=colour.tolist(), count=count, name=names)
    found = {
        rival.name: float(rival.log_prob(rows[900:]).mean())
        for rival in fit_rivals(encoding, rows[:700], rows[700:900])
    }
    assert found["Chow-Liu tree"] > found["independent columns"] + 0.3
