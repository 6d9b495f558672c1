"""`SetFlow`: probabilities of all baskets add up to one, whatever order and form they come in."""

import json
import os
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tessella import SetFlow
from tessella.baselines.sets import BasketMixture, ConditionalBernoulli
from tessella.baselines.sets.counting import improve, independent, split
from tessella.data import PaddedSets, SetShape
from tessella.folders import BrokenFolderError

ITEMS = ["a", "b", "c", "d", "e", 7]


def shopping(number=400, seed=0):
    """Two kinds of baskets: a, b, c go together, and d, e, 7."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        likes = [0.7, 0.6, 0.5, 0.05, 0.1, 0.02] if rng.random() < 0.6 else [0.05, 0.1, 0.1, 0.8, 0.5, 0.4]
        basket = [item for item, like in zip(ITEMS, likes, strict=True) if rng.random() < like]
        found.append(basket or ["a"])
    return found


def fitted(baskets=None, **settings):
    flow = SetFlow(device="cpu", random_state=0, progress=False, **settings)
    return flow.fit(shopping() if baskets is None else baskets)


@pytest.fixture(scope="module")
def mixture():
    return fitted(max_components=4)


@pytest.fixture(scope="module")
def alone():
    return fitted(max_components=1)


@pytest.fixture(params=["mixture", "alone"])
def flow(request):
    return request.getfixturevalue(request.param)


def universe():
    return [list(chosen) for n in range(1, 7) for chosen in combinations(ITEMS, n)]


def test_it_says_which_model_was_chosen(mixture, alone):
    assert (mixture.model_kind_, alone.model_kind_) == ("mixture", "independent")
    assert mixture.best_validation_ < alone.best_validation_ == mixture.validation_["independent"]
    assert mixture.exact_
    assert mixture.components_ in (2, 4)


def test_all_baskets_together_have_probability_one(flow):
    assert np.exp(flow.score_samples(universe())).sum() == pytest.approx(1, abs=1e-9)


def test_no_order_counts(flow):
    forth, back = [["a", "d", 7], ["b"]], [[7, "a", "d"], ["b"]]
    np.testing.assert_array_equal(flow.score_samples(forth), flow.score_samples(back))


def test_draws_have_the_probabilities_that_it_says(flow):
    number, sets = 3000, universe()
    said = np.exp(flow.score_samples(sets))
    place = {frozenset(one): i for i, one in enumerate(sets)}
    drawn = np.bincount([place[frozenset(one)] for one in flow.sample(number)], minlength=len(sets))
    often = number * said > 5
    chi = ((drawn - number * said) ** 2 / (number * said))[often].sum()
    assert chi < often.sum() + 5 * (2 * often.sum()) ** 0.5
    assert all(len(set(one)) == len(one) for one in flow.sample(50))


@pytest.mark.parametrize("basket", [[], ["a"], ["d", "b"], ["a", "b", "c", "d", "e"]])
def test_what_comes_next_is_the_conditional_probability(flow, basket):
    rest = [item for item in ITEMS if item not in basket]
    weight = np.exp(flow.score_samples([[*basket, item] for item in rest]))
    expected = dict(zip(rest, weight / weight.sum(), strict=True))
    found = flow.complete(basket, 6)
    assert dict(found) == pytest.approx(expected, abs=1e-9)
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
    assert flow.complete(basket, 1) == found[:1]


def test_a_round_of_counting_makes_training_baskets_likelier():
    """Without a prior, whatever the kinds were."""
    sets = _coded(shopping())
    shape = SetShape(6, 1, 6)
    whole = independent(sets, shape)
    model, values = split(whole, torch.Generator().manual_seed(0)), []
    for _ in range(8):
        improve(model, sets, whole, prior=0.0)
        values.append(float(model.log_prob_flat(sets.items, sets.offsets).mean()))
    assert np.diff(values).min() > -1e-3  # sizes and kinds have a prior in any case
    assert values[-1] > float(whole.log_prob_flat(sets.items, sets.offsets).mean())


def test_one_kind_is_the_independent_model_of_maximum_likelihood():
    sets, shape = _coded(shopping()), SetShape(6, 1, 6)
    batch = PaddedSets(sets.items, sets.offsets, size=6).batch(torch.arange(len(sets)))
    expected = ConditionalBernoulli(shape).fit(*batch).log_prob(*batch)
    torch.testing.assert_close(independent(sets, shape).log_prob(*batch), expected, rtol=0, atol=1e-6)


def _coded(baskets):
    return PaddedSets([torch.tensor([ITEMS.index(item) for item in basket]) for basket in baskets])


TABLES = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(columns),
    "pyarrow": pa.table,
    "numpy": lambda columns: np.array(list(zip(*columns.values(), strict=True)), dtype=object),
}


@pytest.mark.parametrize("library", TABLES)
def test_tables_are_the_same_baskets(library):
    baskets = [[str(item) for item in basket] for basket in shopping(100)]
    rows = [(f"id {i}", item) for i, basket in enumerate(baskets) for item in basket]
    order = np.random.default_rng(0).permutation(len(rows))
    order = sorted(order, key=lambda place: place % 7)  # baskets need not be together
    columns = {"basket": [rows[i][0] for i in order], "item": [rows[i][1] for i in order]}
    table = TABLES[library](columns)
    flow = fitted(table, max_components=2)
    named = dict(zip(dict.fromkeys(columns["basket"]), flow.score_samples(table), strict=True))
    by_list = flow.score_samples(baskets)
    np.testing.assert_allclose([named[f"id {i}"] for i in range(100)], by_list)
    drawn, odd = flow.sample(5), flow.anomalies(table, top=3)
    assert type(drawn) is (np.ndarray if library == "numpy" else type(table))
    assert len(odd) == 3
    assert np.isfinite(flow.score_samples(drawn if library != "numpy" else baskets)).all()


def test_the_oddest_baskets_and_items(mixture):
    baskets = [["a", "b", "c"], ["a", "b", 7], ["d", "e"]]
    (row,) = mixture.anomalies(baskets, top=1)
    assert (row["basket"], row["item"], row["size"]) == (1, 7, 3)
    assert row["score"] == pytest.approx(mixture.score_samples(baskets).min())
    assert row["surprise"] == pytest.approx(-np.log(dict(mixture.complete(["a", "b"], 6))[7]))
    assert mixture.anomalies([["d"], ["a", "b", "c", "d"]], top=1, per_item=True)[0]["size"] in (1, 4)


def test_neighbours_are_items_of_the_same_baskets(mixture):
    vectors = mixture.embedding()
    assert vectors.positions.shape == (6, mixture.components_)
    place = {item: vectors.positions[i] for i, item in enumerate(vectors.categories)}
    assert np.linalg.norm(place["a"] - place["b"]) < np.linalg.norm(place["a"] - place["d"])


def test_a_saved_model_is_the_same(flow, tmp_path):
    flow.save(tmp_path)
    again = SetFlow.load(tmp_path, device="cpu")
    np.testing.assert_array_equal(flow.score_samples(universe()), again.score_samples(universe()))
    assert again.sample(5) == flow.sample(5)
    assert again.complete(["a"]) == flow.complete(["a"])
    assert again.get_params() == flow.get_params()
    assert again.items_ == flow.items_
    assert (again.history_, again.validation_) == (flow.history_, flow.validation_)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said["items"].pop(),
        lambda said: said["items"].append(said["items"][0]),
        lambda said: said["items"].__setitem__(0, ["x"]),
        lambda said: said["config"].__setitem__("components", 10**6),
        lambda said: said["config"].__setitem__("most", 2),
        lambda said: said["fitted"].__setitem__("model_kind_", "other"),
        lambda said: said.__setitem__("library", "os"),
        lambda said: said.pop("config"),
    ],
)
def test_changed_folders_are_refused(mixture, tmp_path, change):
    mixture.save(tmp_path)
    said = json.loads((tmp_path / "estimator.json").read_text())
    change(said)
    (tmp_path / "estimator.json").write_text(json.dumps(said))
    with pytest.raises(BrokenFolderError):
        SetFlow.load(tmp_path)


@pytest.mark.parametrize(
    ("baskets", "error", "message"),
    [
        ([], ValueError, "got no baskets"),
        ([["a"]], ValueError, "expected at least 2"),
        ([["a"], []], ValueError, "basket 1: got no items"),
        ([["a"], ["a"]], ValueError, "single item 'a'"),
        (["ab", "cd"], TypeError, "basket 0: got 'ab'"),
        ("ab cd", TypeError, "got the text"),
        ([["a"], 3], TypeError, "basket 1: got 3"),
        ([["a"], [["b"]]], TypeError, "hashable"),
        ([["a"], [None]], ValueError, "basket 1: got a missing item"),
        (pd.DataFrame({"a": [1], "b": [2], "c": [3]}), ValueError, "3 columns; expected two"),
        (pd.DataFrame({"a": [1, 2], "b": ["x", None]}), ValueError, "column 'b', row 1"),
        ([list(range(501)), [1]], ValueError, "501 items; expected at most 500"),
    ],
)
def test_what_is_no_baskets_is_refused(baskets, error, message):
    with pytest.raises(error, match=message):
        fitted(baskets)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unseen": "guess"}, "unseen: got 'guess'"),
        ({"max_components": 0}, "max_components: got 0"),
        ({"test_fraction": 0.95}, "test_fraction"),
        ({"time_budget": -1}, "time_budget"),
        ({"device": "tpu"}, "device"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        SetFlow(**settings).fit(shopping(10))


def test_items_that_training_did_not_see(mixture):
    with pytest.raises(ValueError, match="basket 1: got the item 'z', which training did not see"):
        mixture.score_samples([["a"], ["b", "z"]])
    with pytest.raises(ValueError, match="item 'z'"):
        mixture.complete(["z"])
    lenient = fitted(max_components=2, unseen="skip")
    with pytest.warns(UserWarning, match="2 items of 2 baskets were not seen"):
        found = lenient.score_samples([["a", "z"], ["z"], ["b"]])
    assert found[0] == lenient.score_samples([["a"]])[0]
    assert found[1] == -np.inf
    assert np.isfinite(found[2])
    with pytest.warns(UserWarning, match="left out"):
        assert [row["basket"] for row in lenient.anomalies([["a"], ["z"]])] == [0]
    assert lenient.complete(["z", "a"]) == lenient.complete(["a"])


def test_a_repeated_item_counts_once(mixture):
    with pytest.warns(UserWarning, match="2 items were in their basket already"):
        found = mixture.score_samples([["a", "a", "a", "d"]])
    np.testing.assert_array_equal(found, mixture.score_samples([["a", "d"]]))


def test_baskets_may_be_larger_than_those_of_training_but_not_much():
    flow = fitted([["a", "b"], ["c", "d"], ["e", "f"], ["a", "g"]] * 5)
    assert np.isfinite(flow.score_samples([["a", "b", "c"]])).all()
    with pytest.raises(ValueError, match="basket 0: got 6 items; expected at most 4"):
        flow.score_samples([["a", "b", "c", "d", "e", "f"]])
    with pytest.raises(ValueError, match="got 4 items; expected fewer than 4"):
        flow.complete(["a", "b", "c", "d"])


def test_baskets_of_one_item_each():
    flow = fitted([["x"], ["y"], ["x"], ["x"]] * 10)
    assert dict(flow.complete([], 2))["x"] == pytest.approx(0.75, abs=0.05)


def test_the_manners_of_an_estimator(mixture):
    again = clone(mixture)
    assert again.get_params() == mixture.get_params()
    with pytest.raises(NotFittedError):
        again.score_samples([["a"]])
    np.testing.assert_array_equal(again.fit(shopping()).score_samples([["a"]]), mixture.score_samples([["a"]]))
    assert mixture.score([["a"], ["b"]]) == pytest.approx(mixture.score_samples([["a"], ["b"]]).mean())
    with pytest.raises(TypeError, match="to be saved"):
        fitted([[(1, 2), 3], [3, 4]] * 5).save("never")


def test_a_hundred_thousand_items():
    """A few hundred baskets among them: fitted, scored and drawn without a table of baskets by items."""
    generator = torch.Generator().manual_seed(0)
    baskets = [torch.randperm(100_000, generator=generator)[: 2 + i % 30].tolist() for i in range(100)]
    baskets += [list(range(first, first + 20)) for first in range(0, 100_000, 20)]
    flow = fitted(baskets, max_components=2, time_budget=1.0)
    assert len(flow.items_) == 100_000
    assert np.isfinite(flow.score_samples(baskets[:200])).all()
    assert len(flow.sample(20)) == 20
    assert len(flow.complete(baskets[0], 3)) == 3


@pytest.mark.skipif(not os.environ.get("TESSELLA_DATA"), reason="TESSELLA_DATA is unset: Retail does not ship")
def test_retail_baskets_are_likelier_than_independent_items():
    from tessella.data import load_transactions

    rows = [row.tolist() for row in load_transactions("retail").rows[:3000]]
    flow = fitted(rows, test_fraction=0.3, max_components=8, model_kind="mixture")
    held_out = [rows[place] for place in flow.parts_["test"]]
    gain = flow.score_samples(held_out) - flow.independent_scores(held_out)
    assert flow.model_kind_ == "mixture"
    assert gain.mean() > 2 * gain.std() / len(gain) ** 0.5


def test_a_mixture_is_no_table_of_baskets_by_items():
    model = BasketMixture(SetShape(5, 1, 3), components=2)
    items, mask = model.sample(4)
    assert items.shape == mask.shape
    assert model.log_prob(items, mask).isfinite().all()
