"""What one would use instead: exact, normalised likelihoods of mixed rows, and honest about what columns tell."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from tessella.baselines import ChowLiu
from tessella.contracts import Batch
from tessella.data import Encoding
from tessella.data.tables.columns import learn
from tessella.estimators.baselines import MODELS, PLAN, fit_baselines

ROWS = 160
KINDS = {"colour": "categorical", "name": "categorical", "count": "count", "weight": "continuous"}
QUICK = replace(PLAN, time_budget=2.0, device="cpu")
JOINT = [name for name in MODELS if name != "independent columns"]


def encoded(**columns: list) -> tuple[Encoding, Batch]:
    learned = [learn(name, values, KINDS[name], None) for name, values in columns.items()]
    encoding = Encoding(tuple(learned))
    return encoding, encoding.encode(list(columns.values()))


@cache
def table(number: str) -> tuple[Encoding, Batch]:
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
    encoding, batch = table(number)
    found = fit_baselines(encoding, part(batch, 0, 120), part(batch, 120, ROWS), QUICK)
    return {baseline.name: baseline for baseline in found}


def part(batch: Batch, first: int, last: int) -> Batch:
    return tuple(tensor[first:last] for tensor in batch)


def batch_of(rows: torch.Tensor) -> Batch:
    """Rows of a colour, an indicator and a number."""
    return rows[:, :2].long(), rows[:, 2:].double()


def every_count(far: int) -> torch.Tensor:
    present = [[colour, 1.0, float(v)] for colour in (0, 1) for v in range(-far, far)]
    return torch.tensor(present + [[colour, 0.0, 0.0] for colour in (0, 1)], dtype=torch.float64)


@pytest.mark.parametrize("name", MODELS)
def test_masses_of_all_rows_with_a_count_sum_to_one(name):
    log_prob = baselines("count")[name].log_prob(*batch_of(every_count(50_000)))
    assert float(log_prob.exp().sum()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_densities_of_all_rows_with_a_number_integrate_to_one(name):
    """Constant in bins; in the tails v = edge +- span (1 / u - 1), dv = span / u^2 du; masses on missing and 2."""
    baseline = baselines("weight")[name]
    assert baseline.codes.encoding.columns[1].atoms == (2.0,)
    edges = baseline.codes.distributions[0].bins.edges
    u = (torch.arange(1000) + 0.5) / 1000
    span = edges[-1] - edges[0]
    line = torch.cat([(edges[1:] + edges[:-1]) / 2, edges[0] - span * (1 / u - 1), edges[-1] + span * (1 / u - 1)])
    weight = torch.cat([edges.diff(), *[span / u**2 / 1000] * 2])
    total = 0.0
    for colour in (0.0, 1.0):
        rows = torch.stack([torch.full_like(line, colour), torch.ones_like(line), line], 1)
        apart = torch.tensor([[colour, 0.0, 0.0], [colour, 2.0, 0.0]])
        inside, outside = (baseline.log_prob(*batch_of(rows)).exp() for rows in (rows, apart))
        total += float(inside @ weight + outside.sum())
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_rows_are_drawn_as_often_as_they_are_likely(name):
    baseline, every, count = baselines("count")[name], every_count(60), 40_000
    torch.manual_seed(0)
    drawn = torch.cat(baseline.sample(count), 1)
    assert drawn.shape == (count, 3)
    near = drawn[(drawn[:, 2].abs() < 60)]
    place = torch.where(near[:, 1] == 1, 120 * near[:, 0] + near[:, 2] + 60, 240 + near[:, 0])
    share = torch.bincount(place.long(), minlength=len(every)) / count
    mass = baseline.log_prob(*batch_of(every)).exp()
    assert ((share - mass).abs() < 5 * (mass / count).sqrt() + 5 / count).all()


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_drawn_as_often_as_they_are_likely(name):
    """The share of each code, colour by colour; inside a code, `test_number_distributions` looks."""
    baseline, count = baselines("weight")[name], 40_000
    torch.manual_seed(0)
    codes = baseline.codes.codes(*baseline.sample(count))
    every = torch.cartesian_prod(*map(torch.arange, baseline.codes.counts))
    share = torch.bincount(codes @ torch.tensor([baseline.codes.counts[1], 1]), minlength=len(every)) / count
    mass = baseline.model.log_prob(every).exp().detach()
    assert ((share - mass).abs() < 5 * (mass / count).sqrt() + 5 / count).all()


@pytest.mark.parametrize("number", ["count", "weight"])
@pytest.mark.parametrize("name", JOINT)
def test_the_baselines_rank_as_they_should(number, name):
    """The colour says the number, so models that join columns gain what the mutual information allows."""
    held_out = part(table(number)[1], 120, ROWS)
    score = {name: float(baseline.log_prob(*held_out).mean()) for name, baseline in baselines(number).items()}
    assert score[name] > score["independent columns"] + 0.1


def test_a_column_of_names_is_not_joined_to_another():
    """Two columns of 20,000 categories each, and a coin that one of them shows: a tree of three would be all chance."""
    coin = torch.arange(400) % 2
    rows = torch.stack([torch.arange(400) * 50, torch.arange(400).flip(0) * 50, coin, 1 - coin], 1)
    model = ChowLiu((20_000, 20_000, 2, 2)).fit(rows, largest_table=1000)
    assert model.parent.tolist()[:2] == [-1, -1]
    assert sorted(model.parent.tolist()[2:]) in ([-1, 2], [-1, 3])
    assert model.sample(5)[0].shape == (5, 4)
    joint = [[0, 0, a, b] for a in (0, 1) for b in (0, 1)]
    alone = model.log_prob(torch.tensor(joint)).logsumexp(0)
    assert float(alone) == pytest.approx(2 * float(model.log_table[0]))


def test_a_column_of_names_does_not_spoil_the_tree():
    """The tree is offered a column that seems to tell everything; the validation rows say that it does not."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue"], 1200)
    count = rng.poisson(np.where(colour == "red", 30, 3)).tolist()
    names = rng.permutation([f"n{i % 600}" for i in range(1200)]).tolist()
    encoding, batch = encoded(colour=colour.tolist(), count=count, name=names)
    train, validation, held_out = part(batch, 0, 700), part(batch, 700, 900), part(batch, 900, 1200)
    found = {
        baseline.name: float(baseline.log_prob(*held_out).mean())
        for baseline in fit_baselines(encoding, train, validation, names=["Chow-Liu tree", "independent columns"])
    }
    assert found["Chow-Liu tree"] > found["independent columns"] + 0.3
