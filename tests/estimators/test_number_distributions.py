"""A column of numbers on its own: near the truth, of total mass one, and drawn as it is scored."""

from functools import cache

import numpy as np
import pytest
import torch
from tests.estimators.columns_for_tests import KNOWN

from tessella.data import Column, Encoding
from tessella.data.tables.columns import learn
from tessella.estimators.baselines import fit_baselines
from tessella.estimators.coding import Codes, NumberBins, NumberDistribution

TRAIN, VALIDATION, HELD_OUT = 18_000, 2000, 10_000
NEAR = 0.05  # nats a column


def plain(numbers: np.ndarray) -> list[float | None]:
    return [None if np.isnan(number) else number for number in numbers.tolist()]


@cache
def column(name: str) -> tuple[Column, torch.Tensor, np.ndarray]:
    """A column, its numbers in steps, and the true log-likelihood of each row."""
    known = KNOWN[name]
    numbers = known.draw(np.random.default_rng(1), TRAIN + VALIDATION + HELD_OUT)
    learned = learn(name, plain(numbers), None, None)
    return learned, torch.from_numpy(learned.encode(plain(numbers), "error")), known.log_prob(numbers)


@cache
def fitted(name: str) -> NumberDistribution:
    spec, numbers, _ = column(name)
    return NumberDistribution.of(spec, numbers[:TRAIN], numbers[TRAIN : TRAIN + VALIDATION])


def total_mass(distribution: NumberDistribution) -> float:
    """Of everything that can be, by sums over the grid and by quadrature in the bins and the tails."""
    bins = distribution.bins
    apart = torch.cat([bins.atoms, torch.tensor([torch.nan] * bins.missing)])
    first, last = (bins._opened(bins.edges[[end]]) for end in (0, -1))
    span = bins.edges[-1] - bins.edges[0]
    if bins.whole:
        far = 200 + int(span) // 2
        line = torch.arange(int(first) - far, int(last) + far, dtype=torch.float64)
        line = line[~torch.isin(line, bins.atoms)]
        ends = bins._closed(line[[0, -1]])
        beyond = torch.stack([bins.edges[0] - ends[0], ends[1] + 1 - bins.edges[-1]])  # P(distance > d) = L / (L + d)
        rest = distribution.log_mass[[0, bins.bins + 1]].exp() @ (span / (span + beyond))
        return float(torch.cat([distribution.log_prob(apart), distribution.log_prob(line)]).exp().sum() + rest)
    edges, points = bins.edges, 8
    inside = edges[:-1, None] + edges.diff()[:, None] * (torch.arange(points) + 0.5) / points
    u = (torch.arange(4000) + 0.5) / 4000  # the tails as v = edge +- span (1 / u - 1), dv = span / u^2 du
    tails = [
        distribution.log_prob(end + sign * span * (1 / u - 1)).exp() * span / u**2
        for sign, end in ((-1, first), (1, last))
    ]
    widths = edges.diff()[:, None].expand_as(inside)
    within = (distribution.log_prob(inside.flatten()).exp() * widths.flatten() / points).sum()
    return float(within + sum(tail.mean() for tail in tails) + distribution.log_prob(apart).exp().sum())


@pytest.mark.parametrize("name", KNOWN)
def test_a_distribution_is_near_the_truth(name):
    spec, numbers, truth = column(name)
    assert spec.kind == KNOWN[name].kind
    held_out = slice(TRAIN + VALIDATION, None)
    excess = truth[held_out] - fitted(name).log_prob(numbers[held_out]).numpy()
    assert -0.02 < excess.mean() < NEAR


@pytest.mark.parametrize("name", KNOWN)
def test_the_total_mass_is_one(name):
    assert total_mass(fitted(name)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("most", [8, None])
def test_draws_are_as_likely_as_they_are_frequent(name, most):
    """The share of every part among the draws, and the mean log-likelihood of the draws, which is an entropy."""
    chosen, rows = fitted(name), 40_000
    encoding = Encoding((column(name)[0],))
    codes = Codes(encoding, [chosen], most)
    torch.manual_seed(0)
    groups = torch.zeros(codes.counts[-1]).index_add(0, codes.groups[0], chosen.log_mass.exp())
    drawn = encoding.join(*codes.draw(torch.multinomial(groups, rows, replacement=True)[:, None]))
    values = torch.from_numpy(encoding.values(0, drawn.numpy())).contiguous()
    share = torch.bincount(chosen.bins.codes(values), minlength=chosen.bins.parts) / rows
    mass = chosen.log_mass.exp()
    assert ((share - mass).abs() < 5 * (mass / rows).sqrt() + 5 / rows).all()
    own, real = chosen.log_prob(values), chosen.log_prob(column(name)[1])
    error = float((own.var() / len(own) + real.var() / len(real)).sqrt())
    assert float(own.mean() - real.mean()) == pytest.approx(0, abs=5 * error + 0.02)


def test_independent_columns_reach_the_entropy_of_independent_columns():
    """The table of all of these columns: no lead over the truth can be made of how numbers are measured."""
    names = list(KNOWN)
    encoding = Encoding(tuple(column(name)[0] for name in names))
    order = [np.random.default_rng(i).permutation(TRAIN + VALIDATION + HELD_OUT) for i in range(len(names))]
    rows = encoding.assemble([column(name)[1].numpy()[place] for name, place in zip(names, order, strict=True)])
    truth = sum(column(name)[2][place] for name, place in zip(names, order, strict=True))
    train, validation, held_out = map(encoding.split, rows.split([TRAIN, VALIDATION, HELD_OUT]))
    (independent,) = fit_baselines(encoding, train, validation, names=["independent columns"])
    excess = truth[-HELD_OUT:] - independent.log_prob(*held_out).numpy()
    assert -0.02 * len(names) < excess.mean() < NEAR * len(names)


NUMBERS = {
    "normal": np.random.default_rng(1).standard_normal(160),
    "heavy": np.random.default_rng(2).standard_cauchy(160),
    "repeated": np.append(np.random.default_rng(3).exponential(1, 80), [0.0] * 60 + [1e-15] * 20),
    "two values": np.array([3.0] * 50 + [7.0] * 50),
    "single value": np.array([3.0] * 50),
    "none": np.array([]),
}


@pytest.mark.parametrize("kind", ["count", "continuous"])
@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("most", [1, 8, 256])
@pytest.mark.parametrize("atoms", [[], [0.0, 3.0, 4.0, 100.0]], ids=["no atoms", "atoms"])
def test_whatever_the_training_values_the_mass_is_one(kind, values, most, atoms):
    values = np.round(values) if kind == "count" else values
    spec = learn("x", [*values.tolist(), -2.0, 100.0, None], kind, None)
    bins = NumberBins.of(spec, values, most, np.array(atoms))
    assert (bins.edges.diff() > 0).all()
    uneven = torch.rand(bins.parts)
    assert total_mass(NumberDistribution(bins, (uneven / uneven.sum()).log())) == pytest.approx(1, abs=1e-6)
    far = torch.tensor([-1e9, 1e9, 12.25 if kind == "continuous" else 12.0])
    assert bins.log_spread(torch.cat([far, torch.from_numpy(values)])).isfinite().all()


def test_a_missing_number_is_a_part_of_its_own():
    bins = NumberBins(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.5]), whole=False, missing=True)
    values = torch.tensor([-1.0, 0.25, 1.5, 2.0, 0.5, torch.nan])
    assert bins.codes(values).tolist() == [0, 1, 2, 3, 4, 5]
    assert bins.log_spread(values)[[1, 2, 4, 5]].tolist() == [0.0] * 4
