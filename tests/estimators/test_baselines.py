"""What one would use instead: exact, normalised likelihoods of mixed rows, and honest about what columns tell."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from tessella.baselines import ChowLiu
from tessella.data.tables.columns import learn
from tessella.data.tables.encoding import Encoding
from tessella.estimators.baselines import MODELS, PLAN, fit_baselines

ROWS = 160
KINDS = {"colour": "categorical", "name": "categorical", "count": "count", "weight": "continuous"}
QUICK = replace(PLAN, time_budget=2.0, device="cpu")
JOINT = [name for name in MODELS if name != "independent columns"]


def encoded(**columns: list) -> tuple[Encoding, torch.Tensor]:
    learned = [learn(name, values, KINDS[name], None) for name, values in columns.items()]
    encoding = Encoding(tuple(learned))
    return encoding, encoding.encode(list(columns.values()))


@cache
def table(number: str) -> tuple[Encoding, torch.Tensor]:
    """The colour says the number; some of the numbers are missing, some are 2."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue"], ROWS)
    mean = np.where(colour == "red", 9, 3)
    values = rng.poisson(mean) if number == "count" else mean + rng.standard_normal(ROWS)
    values = np.where(rng.random(ROWS) < 0.1, 2, values).tolist()
    values = [None if gone else value for gone, value in zip(rng.random(ROWS) < 0.3, values, strict=True)]
    return encoded(colour=colour.tolist(), **{number: values})


@cache
def baselines(number: str):
    encoding, rows = table(number)
    return {baseline.name: baseline for baseline in fit_baselines(encoding, rows[:120], rows[120:], QUICK)}


def every_count(far: int) -> torch.Tensor:
    present = [[colour, 1.0, float(v)] for colour in (0, 1) for v in range(-far, far)]
    return torch.tensor(present + [[colour, 0.0, 0.0] for colour in (0, 1)], dtype=torch.float64)


@pytest.mark.parametrize("name", MODELS)
def test_masses_of_all_rows_with_a_count_sum_to_one(name):
    assert float(baselines("count")[name].log_prob(every_count(50_000)).exp().sum()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_densities_of_all_rows_with_a_number_integrate_to_one(name):
    """Constant in bins; in the tails v = edge +- span (1 / u - 1), dv = span / u^2 du; masses on missing and 2."""
    baseline = baselines("weight")[name]
    assert baseline.codes.encoding.columns[1].atoms == (2.0,)
    edges = baseline.codes.laws[0].bins.edges
    u = (torch.arange(1000) + 0.5) / 1000
    span = edges[-1] - edges[0]
    line = torch.cat([(edges[1:] + edges[:-1]) / 2, edges[0] - span * (1 / u - 1), edges[-1] + span * (1 / u - 1)])
    weight = torch.cat([edges.diff(), *[span / u**2 / 1000] * 2])
    total = 0.0
    for colour in (0.0, 1.0):
        rows = torch.stack([torch.full_like(line, colour), torch.ones_like(line), line], 1)
        apart = torch.tensor([[colour, 0.0, 0.0], [colour, 2.0, 0.0]])
        total += float(baseline.log_prob(rows).exp() @ weight + baseline.log_prob(apart).exp().sum())
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_rows_are_drawn_as_often_as_they_are_likely(name):
    baseline, every, count = baselines("count")[name], every_count(60), 40_000
    torch.manual_seed(0)
    drawn = baseline.sample(count)
    assert drawn.shape == (count, 3)
    near = drawn[(drawn[:, 2].abs() < 60)]
    place = torch.where(near[:, 1] == 1, 120 * near[:, 0] + near[:, 2] + 60, 240 + near[:, 0])
    share = torch.bincount(place.long(), minlength=len(every)) / count
    mass = baseline.log_prob(every).exp()
    assert ((share - mass).abs() < 5 * (mass / count).sqrt() + 5 / count).all()


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_drawn_as_often_as_they_are_likely(name):
    """The share of each code, colour by colour; inside a code, `test_number_laws` looks."""
    baseline, count = baselines("weight")[name], 40_000
    torch.manual_seed(0)
    codes = baseline.codes.codes(baseline.sample(count))
    every = torch.cartesian_prod(*map(torch.arange, baseline.codes.counts))
    share = torch.bincount(codes @ torch.tensor([baseline.codes.counts[1], 1]), minlength=len(every)) / count
    mass = baseline.model.log_prob(every).exp().detach()
    assert ((share - mass).abs() < 5 * (mass / count).sqrt() + 5 / count).all()


@pytest.mark.parametrize("number", ["count", "weight"])
@pytest.mark.parametrize("name", JOINT)
def test_the_plain_models_rank_as_they_should(number, name):
    """The colour says the number, so models that join columns gain what the mutual information allows."""
    held_out = table(number)[1][120:]
    score = {name: float(baseline.log_prob(held_out).mean()) for name, baseline in baselines(number).items()}
    assert score[name] > score["independent columns"] + 0.1


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
        baseline.name: float(baseline.log_prob(rows[900:]).mean())
        for baseline in fit_baselines(
            encoding, rows[:700], rows[700:900], names=["Chow-Liu tree", "independent columns"]
        )
    }
    assert found["Chow-Liu tree"] > found["independent columns"] + 0.3
