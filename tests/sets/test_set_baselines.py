"""Exact models of sets: they sum to one over a universe, draw what they say, and know no order."""

import pytest
import torch
from sets_for_tests import key, universe

from tessella.baselines.sets import DPP, KDPP, BernoulliMixture, ConditionalBernoulli, ItemTransformer
from tessella.data import SetShape
from tessella.densities.sets import log_symmetric

SHAPES = [SetShape(6, 3, 3), SetShape(6, 1, 4)]
MODELS = {
    "independent": ConditionalBernoulli,
    "mixture": lambda shape: BernoulliMixture(shape, components=3, rank=2),
    "dpp": lambda shape: DPP(shape, rank=6),
    "kdpp": lambda shape: KDPP(shape, rank=5),
    "transformer": lambda shape: ItemTransformer(shape, width=16, layers=1),
}


def made(name: str, shape: SetShape):
    torch.manual_seed(0)
    model, (items, mask) = MODELS[name](shape).double().eval(), universe(shape)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    few = items[::3], mask[::3]
    model.fit(*few) if name == "independent" else model.start(*few)
    return model


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_all_sets_together_have_probability_one(name, shape):
    model = made(name, shape)
    total = model.log_prob(*universe(shape)).exp().sum()
    if name == "dpp":  # over sets of all sizes, also those that never occur
        everything = universe(SetShape(6, 1, 6))
        model.shape = SetShape(6, 1, 6)
        empty = (-model.spectrum().log1p().sum()).exp()
        assert total < 1
        total = model.log_prob(*everything).exp().sum() + empty
    torch.testing.assert_close(total.double(), torch.ones((), dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_draws_have_the_probabilities_that_it_says(name):
    shape, number = SHAPES[1], 1500
    model, (items, mask) = made(name, shape), universe(shape)
    said = model.log_prob(items, mask).exp().detach()
    said = said / said.sum()
    place = {key(*one): i for i, one in enumerate(zip(items, mask, strict=True))}
    drawn = torch.zeros(len(items))
    for one in zip(*model.sample(number), strict=True):
        drawn[place[key(*one)]] += 1
    chi = ((drawn - number * said) ** 2 / (number * said)).sum()
    assert chi < len(items) + 5 * (2 * len(items)) ** 0.5


@pytest.mark.parametrize("name", MODELS)
def test_no_order_counts_and_padding_says_nothing(name):
    shape = SHAPES[1]
    model = made(name, shape)
    items, mask = torch.tensor([[4, 1, 0, 0]]), torch.tensor([[True, True, True, False]])
    again = torch.tensor([[0, 5, 4, 1]]), torch.tensor([[True, False, True, True]])
    torch.testing.assert_close(model.log_prob(items, mask), model.log_prob(*again))


@pytest.mark.parametrize("name", MODELS)
def test_a_gradient_reaches_every_parameter(name):
    model = made(name, SHAPES[1]).train()
    if not list(model.parameters()):
        pytest.skip("it counts")
    model.loss(*universe(SHAPES[1])).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_the_independent_model_is_that_of_maximum_likelihood():
    """At the maximum, what is expected was seen."""
    shape = SetShape(5, 2, 3)
    items, mask = universe(shape)
    model = ConditionalBernoulli(shape).fit(items[::2], mask[::2])
    weight = model.log_weight.clone().requires_grad_()
    sets = torch.bincount(mask[::2].sum(1), minlength=4).double()
    (expected,) = torch.autograd.grad((sets * log_symmetric(weight, 3)).sum(), weight)
    torch.testing.assert_close(expected / expected.sum(), model.log_share.exp())


def test_orders_of_larger_sets_are_a_lower_bound():
    shape = SetShape(6, 5, 5)
    torch.manual_seed(0)
    model = ItemTransformer(shape, width=16, layers=1).eval()
    with torch.no_grad():
        model.head.normal_(0, 0.3)
    items, mask = universe(shape)
    model.start(items, mask)
    weights = torch.cat(model.chunked_log_weights(items, mask, samples=3000), 1).detach()
    assert not model.exact
    assert float(weights.exp().mean(0).sum()) == pytest.approx(1, abs=0.1)
    assert (model.log_prob(items, mask, samples=3).mean() <= weights.exp().mean(0).log().mean() + 0.05).item()


@pytest.mark.parametrize(
    ("items", "mask", "message"),
    [
        ([[1, 1, 2]], [[True, True, True]], "different items"),
        ([[1, 7, 2]], [[True, True, True]], "out of range"),
        ([[1, 0, 2]], [[True, False, True]], "sets of 2 to 2 items"),
    ],
)
def test_what_is_no_set_is_refused(items, mask, message):
    with pytest.raises(ValueError, match=message):
        made("independent", SHAPES[0]).log_prob(torch.tensor(items), torch.tensor(mask))


def test_symmetric_polynomials_keep_their_digits():
    """One item that is nearly certain: by power sums all digits would cancel."""
    log_weight = torch.tensor([0.0, *[-30.0] * 6], dtype=torch.float64)
    found = log_symmetric(log_weight, 4)[4]
    torch.testing.assert_close(found, torch.tensor(20.0, dtype=torch.float64).log() - 90, rtol=1e-9, atol=1e-9)
