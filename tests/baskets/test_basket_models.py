"""Laws of every model that `SetFlow` may choose: those that count, and those that learn."""

import json
from functools import cache
from itertools import combinations, permutations
from math import factorial, log

import numpy as np
import pytest
import torch
from sklearn.base import clone

from tessella import SetFlow
from tessella.baselines.sets.counting import improve
from tessella.data import PaddedSets, SetShape
from tessella.estimators.baskets import KINDS, choosing, learning, resuming
from tessella.estimators.baskets.overview import gather
from tessella.estimators.learning import Plan
from tessella.folders import BrokenFolderError
from tessella.report.page import page
from tessella.training import RunFolder
from tessella.training.learner import Learner

ITEMS = ["a", "b", "c", "d", "e", 7]
LEARNED = ["transformer", "coupling"]
EXACT = ["independent", "mixture", "transformer of few"]


def shopping(number=600, seed=0, most=6):
    """Two kinds of baskets: a, b, c go together, and d, e, 7."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        likes = [0.7, 0.6, 0.5, 0.05, 0.1, 0.02] if rng.random() < 0.6 else [0.05, 0.1, 0.1, 0.8, 0.5, 0.4]
        basket = [item for item, like in zip(ITEMS, likes, strict=True) if rng.random() < like]
        found.append((basket or ["a"])[:most])
    return found


def options(kind, **more):
    fixed = {"model_kind": kind, "max_steps": 40, "threads": 1, "device": "cpu", "random_state": 0}
    return fixed | {"progress": False} | more


@cache
def fitted(kind):
    """Of few: baskets of two items at most, so that four are the largest, and all orders are summed."""
    if kind == "transformer of few":
        return SetFlow(**options("transformer")).fit(shopping(most=2))
    return SetFlow(**options(kind, max_components=4)).fit(shopping())


def universe(flow):
    sizes = range(1, flow.model_.shape.most + 1)
    return [list(chosen) for n in sizes for chosen in combinations(ITEMS, n)]


ALL = [*KINDS, "transformer of few"]


@pytest.mark.parametrize("kind", ALL)
def test_it_is_what_was_asked_for_and_says_so(kind):
    flow = fitted(kind)
    assert flow.model_kind_ == kind.split()[0]
    assert flow.exact_ == (kind in EXACT)
    assert flow.best_validation_ == flow.validation_[flow.model_kind_]
    assert flow.validation_["independent"] >= flow.best_validation_ - 0.5
    assert (flow.config_ is None) == (flow.components_ > 0)
    assert all(row["model"] for row in flow.history_)


@pytest.mark.parametrize("kind", EXACT)
def test_probabilities_of_exact_models_sum_to_one(kind):
    flow = fitted(kind)
    assert np.exp(flow.score_samples(universe(flow))).sum() == pytest.approx(1, abs=1e-5)


def test_orders_that_are_drawn_bound_the_sum_over_all_of_them():
    """720 orders of six items: the bound is below in the mean, and nearer with more of them."""
    flow = fitted("transformer")
    sets = [one for one in universe(flow) if len(one) > 4]
    exact = np.array([_by_all_orders(flow, one) for one in sets])
    few, more = (_with_samples(flow, n).score_samples(sets) for n in (1, 2000))
    small = [one for one in universe(flow) if len(one) <= 4]
    assert np.exp(exact).sum() + np.exp(flow.score_samples(small)).sum() == pytest.approx(1, abs=1e-4)
    assert few.mean() < exact.mean()
    np.testing.assert_allclose(more, exact, atol=0.25)


def test_points_in_cells_bound_what_the_flow_has_there():
    """More points are nearer; all baskets together have 1, less what the flow spends on items that come twice."""
    flow = fitted("coupling")
    few, more = (_with_samples(flow, n).score_samples(universe(flow)) for n in (1, 100))
    assert few.mean() < more.mean()
    assert 0.5 < np.exp(more).sum() < 1.02


@pytest.mark.parametrize("kind", ALL)
def test_no_order_counts_and_a_call_repeats_itself(kind):
    flow = fitted(kind)
    forth, back = [["a", "d"], ["b"]], [["d", "a"], ["b"]]
    np.testing.assert_array_equal(flow.score_samples(forth), flow.score_samples(back))
    assert flow.complete(["a", "d"]) == flow.complete(["d", "a"])


@pytest.mark.parametrize("basket", [[], ["a"], ["d", "b"]])
@pytest.mark.parametrize("kind", ["independent", "mixture", "coupling"])
def test_what_comes_next_is_the_conditional_likelihood(kind, basket):
    flow = fitted(kind) if kind != "coupling" else _with_samples(fitted(kind), 400)
    rest = [item for item in ITEMS if item not in basket]
    weight = np.exp(flow.score_samples([[*basket, item] for item in rest]))
    expected = dict(zip(rest, weight / weight.sum(), strict=True))
    assert dict(flow.complete(basket, 6)) == pytest.approx(expected, abs=0.05 if kind == "coupling" else 1e-9)


@pytest.mark.parametrize("basket", [[], ["a"], ["d", "b"], ["a", "b", "c", "e", "d"]])
def test_what_comes_last_in_a_transformer(basket):
    """P(k last | the others before it, in any order)."""
    flow = fitted("transformer")
    rest = [item for item in ITEMS if item not in basket]
    joint = np.array([sum(_in_order(flow, [*one, item]) for one in permutations(basket)) for item in rest])
    found = dict(flow.complete(basket, 6))
    assert sum(found.values()) == pytest.approx(1, abs=1e-6)
    expected = dict(zip(rest, joint / joint.sum(), strict=True))
    assert found == pytest.approx(expected, abs=1e-5 if len(basket) <= 4 else 0.05)


@pytest.mark.parametrize("basket", [["a"], ["d", "b"], ["a", "b", "e"], ["a", "b", "c", "d"]])
def test_one_of_a_basket_comes_last_in_a_transformer(basket):
    """P(S | n) = sum over k in S of P(the others first | n) P(k last | the others first): scores and completions."""
    flow, total = fitted("transformer"), 0.0
    for item in basket:
        others, chance = [one for one in basket if one != item], 0.0
        for one in permutations(others):
            chance += sum(_in_order(flow, [*one, last]) for last in ITEMS if last not in others)
        total += chance * dict(flow.complete(others, 6))[item]
    size = float(flow.model_.sizes.log_share[len(basket)].exp())
    assert total * size == pytest.approx(np.exp(flow.score_samples([basket])[0]), rel=1e-4)


@pytest.mark.parametrize("kind", ALL)
def test_draws_are_baskets_as_frequent_as_it_says(kind):
    flow, number = fitted(kind), 1500
    sets = universe(flow)
    said = np.exp(flow.score_samples(sets))
    place = {frozenset(one): i for i, one in enumerate(sets)}
    drawn = np.bincount([place[frozenset(one)] for one in flow.sample(number)], minlength=len(sets)) / number
    assert np.abs(drawn - said).sum() < (0.6 if kind == "coupling" else 0.3)


@pytest.mark.parametrize("kind", ALL)
def test_the_oddest_item_is_the_least_expected(kind):
    flow = fitted(kind)
    (row,) = flow.anomalies([["a", "b"], ["b", 7]], top=1)
    assert (row["basket"], row["size"]) == (1, 2)
    other = "b" if row["item"] == 7 else 7
    assert row["surprise"] == pytest.approx(-log(dict(flow.complete([other], 6))[row["item"]]), abs=1e-6)


@pytest.mark.parametrize("kind", ALL)
def test_vectors_and_the_page_of_every_model(kind):
    flow, baskets = fitted(kind), shopping(most=2 if kind == "transformer of few" else 6)
    vectors = flow.embedding()
    assert vectors.positions.shape[0] == len(vectors.categories) == 6
    assert np.isfinite(vectors.positions).all()
    overview = gather(flow, baskets)
    shown = page(json.loads(json.dumps(overview.__dict__)), "model")
    assert "kept" in shown
    assert ("The model gives a bound" in shown) == (not flow.exact_)


@pytest.mark.parametrize("kind", ALL)
def test_a_saved_model_is_the_same(kind, tmp_path):
    flow = fitted(kind)
    flow.save(tmp_path)
    again = SetFlow.load(tmp_path, device="cpu")
    np.testing.assert_array_equal(flow.score_samples(universe(flow)), again.score_samples(universe(flow)))
    assert again.sample(5) == flow.sample(5)
    assert again.complete(["a"]) == flow.complete(["a"])
    assert (again.config_, again.skipped_, again.exact_) == (flow.config_, flow.skipped_, flow.exact_)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said["config"].__setitem__("model", None),
        lambda said: said["config"].__setitem__("model", {"kind": "dpp"}),
        lambda said: said["config"]["model"].__setitem__("width", 10**6),
        lambda said: said["fitted"].__setitem__("model_kind_", "mixture"),
        lambda said: said["fitted"].__setitem__("exact_", True),
        lambda said: said["fitted"].__setitem__("samples_", 0),
    ],
)
def test_changed_folders_are_refused(change, tmp_path):
    fitted("transformer").save(tmp_path)
    said = json.loads((tmp_path / "estimator.json").read_text())
    change(said)
    (tmp_path / "estimator.json").write_text(json.dumps(said))
    with pytest.raises(BrokenFolderError):
        SetFlow.load(tmp_path)


def test_validation_baskets_choose_and_what_cannot_pay_is_named(monkeypatch):
    baskets = shopping()
    flow = SetFlow(**options("auto", max_components=4)).fit(baskets)
    assert set(flow.skipped_) == set(LEARNED)
    assert "it takes 1,000" in flow.skipped_["transformer"]
    monkeypatch.setattr(learning, "BASKETS", 100)
    flow = SetFlow(**options("auto", max_components=4)).fit(baskets)
    assert set(flow.validation_) == {"independent", "mixture", *LEARNED}
    assert flow.model_kind_ == min(flow.validation_, key=flow.validation_.__getitem__)
    assert flow.skipped_ == {}
    flow = SetFlow(**options("auto", max_components=4, time_budget=0.5)).fit(baskets)
    assert flow.skipped_ == dict.fromkeys(LEARNED, "0.3 s; it takes 2 s at least")


@pytest.mark.parametrize(
    ("kind", "items", "size", "seconds", "why"),
    [
        ("transformer", 16_000, 10, 40.0, "one pass over the baskets takes about 16 s; there were 40 s"),
        ("transformer", 90_000, 10, None, "one pass over the baskets takes about 90 s; there were 300 s"),
        ("transformer", 500, 10, 60.0, ""),
        ("transformer", 500, 10, None, ""),
        ("coupling", 16_000, 3, None, "16,000 items; it is tried with up to 500"),
        ("coupling", 400, 9, None, "baskets of 9 items; it is tried with up to 8"),
        ("coupling", 400, 8, 60.0, ""),
    ],
)
def test_what_can_pay(kind, items, size, seconds, why):
    sets = PaddedSets(torch.arange(2000 * size) % items, size * torch.arange(2001))
    plan = Plan(0, "cpu", None, seconds, False)
    assert learning.why_not(kind, sets, SetShape(items, 1, 20), plan).partition(", and")[0] == why


def test_a_model_whose_training_fails_is_skipped(monkeypatch):
    def fails(*_):
        raise ArithmeticError("step 3: the loss or its gradient is not finite")

    monkeypatch.setattr(learning, "BASKETS", 100)
    monkeypatch.setattr(choosing, "learn", fails)
    flow = SetFlow(**options("auto", max_components=2)).fit(shopping(200))
    assert flow.skipped_ == dict.fromkeys(LEARNED, "step 3: the loss or its gradient is not finite")
    with pytest.raises(ArithmeticError):
        SetFlow(**options("transformer")).fit(shopping(200))


def resumable(**more):
    return SetFlow(**options("transformer", progress=True, **more))


class Killed(BaseException):
    pass


@pytest.mark.parametrize("seconds", [None, 300.0])
def test_a_killed_fit_continues_as_if_nothing_had_been(seconds, tmp_path, monkeypatch, capsys):
    update = Learner.update

    def deadly(self, at, *rest):
        update(self, at, *rest)
        if at == 25:
            raise Killed

    monkeypatch.setattr(Learner, "update", deadly)
    with pytest.raises(Killed):
        resumable(time_budget=seconds).fit_resumable(shopping(), tmp_path)
    monkeypatch.setattr(Learner, "update", update)
    reached = RunFolder(tmp_path / "transformer").state().step
    assert 0 < reached <= 25
    flow = resumable(time_budget=seconds).fit_resumable(shopping(), tmp_path)
    assert f"resuming at step {reached} of 40" in capsys.readouterr().err
    if seconds is not None:  # a learning rate that follows the clock is never the same
        return
    whole = resumable().fit(shopping())
    np.testing.assert_array_equal(flow.score_samples(universe(flow)), whole.score_samples(universe(flow)))
    resumable().fit_resumable(shopping(500), tmp_path)  # other baskets begin anew
    assert "resuming" not in capsys.readouterr().err


def test_a_killed_fit_goes_on_counting_where_it_was(tmp_path, monkeypatch):
    baskets, rounds = shopping(1000), []

    def deadly(*arguments):
        improve(*arguments)
        rounds.append(1)
        if len(rounds) == 17:
            raise Killed

    monkeypatch.setattr(resuming, "SECONDS", 0.0)
    counting = SetFlow(**options("mixture", max_components=8))
    whole = clone(counting).fit(baskets)
    monkeypatch.setattr("tessella.estimators.baskets.counting.improve", deadly)
    with pytest.raises(Killed):
        clone(counting).fit_resumable(baskets, tmp_path)
    rounds = [1] * 100
    flow = clone(counting).fit_resumable(baskets, tmp_path)
    assert len(rounds) - 100 == whole.n_iter_ - 16
    np.testing.assert_array_equal(flow.score_samples(universe(flow)), whole.score_samples(universe(flow)))
    assert [row["validation"] for row in flow.history_] == [row["validation"] for row in whole.history_]
    again = clone(counting).fit_resumable(baskets, tmp_path)  # it was done: nothing is counted twice
    assert len(rounds) - 100 == whole.n_iter_ - 16
    np.testing.assert_array_equal(again.score_samples(universe(flow)), whole.score_samples(universe(flow)))


def _with_samples(flow, samples):
    """The same model, with other bounds."""
    other = SetFlow(**flow.get_params())
    other.__dict__.update(flow.__dict__)
    other.samples_ = samples
    return other


def _in_order(flow, items):
    codes = torch.tensor([[flow.items_.index(item) for item in items]])
    with torch.no_grad():
        return float(flow.model_._in_order(codes, torch.ones_like(codes).bool()).exp())


def _by_all_orders(flow, items):
    n = len(items)
    orders = torch.tensor(list(permutations([flow.items_.index(item) for item in items])))
    with torch.no_grad():
        log_p = flow.model_._in_order(orders, torch.ones_like(orders).bool()).double().logsumexp(0)
    assert len(orders) == factorial(n)
    return float(log_p + flow.model_.sizes.log_share[n])
