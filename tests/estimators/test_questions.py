"""Questions to an exact table: answers agree with likelihoods that are enumerated, or integrated."""

import datetime
from copy import copy
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from tests.estimators.columns_for_tests import KNOWN
from tests.estimators.frames_for_tests import FRAMES, LIBRARIES, cell_flow, mixed_columns, small_flow, to_pandas

from tessella.data.tables.columns import learn
from tessella.data.tables.limits import Limit
from tessella.densities import intervals
from tessella.estimators import TabularFlow
from tessella.estimators.anomalies import contributions
from tessella.estimators.any_order import mixture_of_codes
from tessella.estimators.coding import NumberDistribution
from tessella.estimators.questions import surprise, walks
from tessella.models import AutoregressiveTable, CategoricalMixtureConfig

MODELS = ["autoregressive", "mixture"]
DRAWS = 4000


def shop(rows: int = 1500) -> pd.DataFrame:
    """A product says its price, of which some are zero or missing; pieces follow the kind; some kinds are missing."""
    rng = np.random.default_rng(0)
    product = rng.choice(["pen", "lamp", "desk"], rows, p=[0.5, 0.3, 0.2])
    price = pd.Series(product).map({"pen": 2.0, "lamp": 40.0, "desk": 300.0}) * np.exp(0.3 * rng.standard_normal(rows))
    price[rng.random(rows) < 0.1], price[rng.random(rows) < 0.1] = 0.0, np.nan
    pieces = rng.poisson(np.where(product == "pen", 60, 20))
    kind = np.where(rng.random(rows) < 0.2, None, np.where(product == "pen", "small", "large"))
    day = [datetime.date(2026, 1, 1) + datetime.timedelta(days=int(i)) for i in rng.integers(0, 100, rows)]
    return pd.DataFrame({"product": product, "price": price, "pieces": pieces, "kind": kind, "day": day})


@pytest.fixture(scope="module")
def learned() -> TabularFlow:
    return small_flow(density="autoregressive", width=16, max_steps=100).fit(shop())


@pytest.fixture(scope="module", params=MODELS)
def flow(request, learned) -> TabularFlow:
    """An exact density of the shop, of each kind that answers."""
    fitted = copy(learned)
    if request.param == "mixture":
        rows = fitted._encode(shop())
        fitted.model_ = mixture_of_codes(fitted.encoding_, (rows, rows), fitted._plan(None))
        fitted.config_, fitted.density_ = CategoricalMixtureConfig((fitted.model_.components,)), "mixture"
    return fitted


def density_of(flow: TabularFlow, frame: pd.DataFrame, column: str, known: list[str]) -> np.ndarray:
    """p(column | known) of the rows of a frame, by the walk's own likelihoods."""
    encoding, batch = flow.encoding_, flow._encode(frame)
    places = [walks.variable(encoding, encoding.index(name)) for name in known]
    with torch.no_grad():
        walk, asked = walks.told(flow.model_, batch, places), walks.variable(encoding, encoding.index(column))
        walk.ask(asked)
        return walk.log_prob(asked).double().exp().numpy()


def rows_like(frame: pd.DataFrame, **values) -> pd.DataFrame:
    """The first row, with other values."""
    rows = len(next(iter(values.values())))
    return pd.concat([frame[:1]] * rows, ignore_index=True).assign(**values)


def near(share: float, probability: float, draws: int = DRAWS) -> bool:
    """Within four standard errors."""
    return abs(share - probability) < 4 * (probability * (1 - probability) / draws + 1 / draws**2) ** 0.5 + 1e-9


def test_shares_of_drawn_rows_are_probabilities(flow):
    frame, given = shop(), {"kind": "large"}
    drawn = flow.sample(DRAWS, {**given, "product": ["lamp", "desk"]}, random_state=1)
    asked = rows_like(frame, product=["lamp", "desk"], kind=["large", "large"])
    lamp, desk = density_of(flow, asked, "product", ["kind"])
    assert set(drawn["kind"]) == {"large"}
    assert near((drawn["product"] == "lamp").mean(), lamp / (lamp + desk))
    assert flow.effective_sample_size_ == DRAWS


INTERVALS = {
    "counts": ("pieces", (15, 30), np.arange(15, 31), 1.0),
    "one count": ("pieces", (20, 20), np.arange(20, 21), 1.0),
    "reals": ("price", (20.0, 50.0), np.linspace(20, 50, 6001), 30 / 6000),
    "a zero and reals": ("price", (-5.0, 1.5), np.linspace(0, 1.5, 6002)[1:], 1.5 / 6001),
    "open": ("pieces", (40, None), np.arange(40, 400), 1.0),
}


@pytest.mark.parametrize("case", INTERVALS)
def test_rows_in_an_interval_follow_the_density_in_it(flow, case):
    """Below a number inside the interval is the share that sums or integrals of the density say."""
    column, ends, values, step = INTERVALS[case]
    drawn = flow.sample(DRAWS, {"product": "pen", column: ends}, random_state=2)[column].to_numpy()
    low, high = (-np.inf if ends[0] is None else ends[0]), (np.inf if ends[1] is None else ends[1])
    assert ((drawn >= low) & (drawn <= high)).all()
    frame = rows_like(shop(), **{column: values, "product": ["pen"] * len(values)})
    mass = density_of(flow, frame, column, ["product"]) * step
    zero = density_of(flow, rows_like(shop(), price=[0.0], product=["pen"]), "price", ["product"])[0]
    atom = zero if column == "price" and low <= 0 else 0.0
    if atom:
        assert near((drawn == 0).mean(), atom / (atom + mass.sum()))
    middle = values[len(values) // 3]
    below = (mass[values < middle].sum() + atom) / (mass.sum() + atom)
    assert near((drawn < middle).mean(), below) or abs((drawn < middle).mean() - below) < 0.01


def test_several_limits_at_once_are_exact(flow):
    """Kept by weights: shares of what was limited first are those of the joint, not of its own conditional alone."""
    products, pieces = ["pen", "lamp"], np.arange(30, 61)
    drawn = flow.sample(DRAWS, {"product": products, "pieces": (30, 60)}, random_state=3)
    assert drawn["pieces"].between(30, 60).all()
    joint = {}
    for name in products:
        asked = rows_like(shop(), product=[name] * len(pieces), pieces=pieces)
        joint[name] = (
            density_of(flow, asked[:1], "product", [])[0] * density_of(flow, asked, "pieces", ["product"]).sum()
        )
    assert near((drawn["product"] == "pen").mean(), joint["pen"] / sum(joint.values()))


def test_an_impossible_condition_has_its_probability(flow):
    with torch.no_grad():
        encoding = flow.encoding_
        walk = walks.told(flow.model_, flow._encode(shop()[:1]), [])
        asked = walks.variable(encoding, encoding.index("product"))
        table = walk.ask(asked)
        nothing = Limit.categories(torch.zeros(3, dtype=torch.bool))
        assert float((table + walk.within(asked, nothing)).logsumexp(-1).exp()) == 0
    with pytest.raises(ValueError, match=r"probability 0, the model never makes such a row.*'pen'.*did you mean 'pen'"):
        flow.sample(3, {"product": "pens"})
    with pytest.raises(ValueError, match=r"given: impossible for the model, its probability is \S+"):
        flow.sample(3, {"price": (120.123, 120.1230000001)})


@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_temperature_is_a_power_of_probabilities(flow, temperature):
    drawn = flow.sample(DRAWS, temperature=temperature, random_state=4)
    asked = rows_like(shop(), product=["desk", "lamp", "pen"])
    tempered = density_of(flow, asked, "product", []) ** (1 / temperature)
    assert near((drawn["product"] == "pen").mean(), tempered[2] / tempered.sum())


def test_balanced_columns_have_their_shares(flow):
    for balance, expected in {"product": 1 / 3, "kind": 1 / 2}.items():
        assert flow.sample(300, balance=balance)[balance].value_counts(normalize=True, dropna=False).tolist() == [
            pytest.approx(expected)
        ] * round(1 / expected)
    drawn = flow.sample(DRAWS, {"kind": "large"}, balance={"product": {"pen": 1, "desk": 3}}, random_state=5)
    assert drawn["product"].value_counts().to_dict() == {"desk": 3 * DRAWS // 4, "pen": DRAWS // 4}
    assert set(drawn["kind"]) == {"large"}
    ranges = flow.sample(40, balance={"pieces": {(0, 30): 0.5, (31, None): 0.5}})["pieces"]
    assert (ranges <= 30).sum() == 20


def test_probabilities_of_a_category_are_ratios_of_joint_likelihoods():
    """Of an enumerable table, in the order in which the column comes last."""
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(0, 3, 600), rng.integers(0, 2, 600), rng.integers(0, 4, 600)], 1)
    codes[:, 2] = (codes[:, 2] + codes[:, 0]) % 4 * (rng.random(600) < 0.7)
    flow = small_flow(density="autoregressive", max_steps=60).fit(pd.DataFrame(codes, columns=list("abc")).astype(str))
    everything = np.array(list(product(range(3), range(2), range(4))))
    frame = pd.DataFrame(everything, columns=list("abc")).astype(str)
    for place, (name, rest) in enumerate({"a": "bc", "b": "ac", "c": "ab"}.items()):
        order = torch.tensor([*("abc".index(other) for other in rest), place]).expand(len(frame), -1)
        density = flow.model_.density
        with torch.no_grad():
            joint = density(density.place(*flow._encode(frame)), order).sum(-1).exp().numpy()
        expected = joint / frame.assign(joint=joint).groupby(list(rest))["joint"].transform("sum").to_numpy()
        found = flow.predict_proba(frame.drop(columns=name), name)
        assert np.allclose(found.to_numpy().sum(1), 1)
        assert np.allclose(found.to_numpy()[np.arange(len(frame)), everything[:, place]], expected, atol=1e-5)
        assert (flow.predict(frame, name) == found.columns[found.to_numpy().argmax(1)]).all()


def test_missing_is_evidence_where_training_saw_it_and_no_answer(flow):
    frame = shop()[:6].assign(product=None)
    found = flow.predict_proba(frame, "kind")
    assert list(found) == ["large", "small"]
    assert np.allclose(found.to_numpy().sum(1), 1)
    gone = flow.predict_proba(frame.assign(price=np.nan), "kind")
    unknown = flow.predict_proba(frame.drop(columns=["price", "product"]), "kind")
    assert not np.allclose(gone, unknown)


@pytest.mark.parametrize("column", ["price", "pieces", "day"])
def test_half_of_the_draws_are_below_the_predicted_median(flow, column):
    row = shop().dropna()[:1].drop(columns=column)
    median = flow.predict(row, column)[0]
    drawn = flow.impute(pd.concat([row] * DRAWS, ignore_index=True), random_state=6)[column]
    assert (drawn < median).mean() <= 0.5 + 0.035
    assert (drawn <= median).mean() >= 0.5 - 0.035


@pytest.mark.parametrize("library", LIBRARIES)
def test_imputing_fills_what_is_missing_and_nothing_else(library):
    columns = mixed_columns(24, seed=3)
    flow = small_flow(density="autoregressive", max_steps=2).fit(FRAMES[library](mixed_columns()))
    holes = {"sex": 3, "height": 4, "pay": 5, "visits": 6, "day": 7, "member": 8}
    gaps = {
        name: [None if i % holes.get(name, 99) == 0 else v for i, v in enumerate(vs)] for name, vs in columns.items()
    }
    gaps["height"][1] = 99.5  # below what training saw, and known
    for most_likely in (False, True):
        found = to_pandas(flow.impute(FRAMES[library](gaps), most_likely=most_likely, random_state=0))
        assert not found.isna().any().any()
        for name, values in gaps.items():
            known = [i for i, value in enumerate(values) if value is not None]
            came = to_pandas(FRAMES[library](gaps))[name]
            assert [found[name][i] for i in known] == [came[i] for i in known]
    first, second = flow.impute(FRAMES[library](gaps), n=2, random_state=0)
    assert not to_pandas(first).equals(to_pandas(second))


def test_imputed_values_follow_their_conditional(flow):
    """Two columns that may be missing, both imputed: distributed as rows in which both are there."""
    row = shop()[:1].assign(price=np.nan, kind=None)
    drawn = flow.impute(pd.concat([row] * DRAWS, ignore_index=True), random_state=7)
    rest = ["product", "pieces", "day"]
    assert not drawn.isna().any().any()
    kinds, grid = ["large", "small"], np.concatenate([[0.0], np.linspace(0.01, 1500, 20_001)])
    joint = []
    for kind in kinds:  # price comes before kind
        asked = rows_like(row, kind=[kind] * len(grid), price=grid)
        mass = density_of(flow, asked, "price", rest) * np.where(grid == 0, 1, 1500 / 20_000)
        joint.append(float(mass @ density_of(flow, asked, "kind", [*rest, "price"])))
    assert abs((drawn["kind"] == "large").mean() - joint[0] / sum(joint)) < 0.04


def test_a_surprise_is_zero_on_average_over_rows_of_the_model(flow):
    """Or a little less, by what a network knows inside the parts of numbers."""
    rows = flow.encoding_.join(*flow._encode(flow.sample(2000, random_state=8)))
    found = contributions(flow.model_, flow.encoding_, rows[:400], torch.zeros(400), 1, 0)
    if isinstance(flow.model_, AutoregressiveTable):  # in other orders a network is another distribution
        assert float(found[:, -1].mean()) == pytest.approx(0, abs=0.25)
    else:
        assert found.mean(0).tolist() == pytest.approx([0] * 5, abs=0.25)
    assert float(surprise(flow.model_, flow.encoding_, rows).mean()) == pytest.approx(-0.2, abs=0.4)


def test_a_surprise_is_the_same_in_all_units_and_no_density_is_missed():
    """Multiples of the units change the scores of rows with a price by a constant, and surprises by nothing."""
    frame = shop(400)
    small, large = (
        small_flow(density="autoregressive", max_steps=20).fit(frame.assign(price=scale * frame["price"]))
        for scale in (1.0, 1024.0)
    )
    found = [
        flow.anomalies(frame.assign(price=scale * frame["price"]), top=400).sort_values("row")
        for flow, scale in ((small, 1.0), (large, 1024.0))
    ]
    there = (frame["price"] > 0).to_numpy()
    shift = (found[0]["score"].to_numpy() - found[1]["score"].to_numpy()) / np.log(1024)
    assert np.allclose(shift, there, atol=0.01)
    assert np.allclose(found[0]["surprise"], found[1]["surprise"], atol=0.05)


@pytest.mark.parametrize("name", KNOWN)
def test_parts_of_numbers_in_an_interval_have_their_share(name):
    """`ranges` of uniform parts against sums over draws: P(low <= v <= high)."""
    values = KNOWN[name].draw(np.random.default_rng(0), 3000)
    plain = [None if np.isnan(v) else v for v in values.tolist()]
    column = learn("x", plain, None, None)
    numbers = torch.from_numpy(column.encode(plain))
    one = NumberDistribution.of(column, numbers, numbers)
    torch.manual_seed(0)
    drawn = one.bins.draw(torch.multinomial(one.log_mass.exp(), 20_000, replacement=True))
    for low, high in np.quantile(values[~np.isnan(values)] / column.step, [[0.1, 0.6], [0.4, 0.41], [0.0, 1.0]]):
        ranges = one.bins.ranges(torch.tensor([low]).double(), torch.tensor([high]).double())
        share = float((ranges[0, :, 1] - ranges[0, :, 0]) @ one.log_mass.exp())
        assert near(float(((drawn >= low) & (drawn <= high)).double().mean()), share, 20_000)


def test_truncated_draws_inside_an_interval_are_the_density_cut():
    torch.manual_seed(0)
    for shape in ([0.0, 0.0], [3.0, -1.0], [-5.0, -3.0]):
        many = torch.tensor(shape).expand(20_000, 2)
        first, last = torch.full((20_000,), 0.2).double(), torch.full((20_000,), 0.9).double()
        free, cut = intervals.draw(many), intervals.draw(many, first, last)
        inside = (free >= 0.2) & (free <= 0.9)
        between = intervals.cumulative(last, many)[0] - intervals.cumulative(first, many)[0]
        assert near(float(inside.double().mean()), float(between), 20_000)
        assert bool(((cut >= 0.2) & (cut <= 0.9)).all())
        half = (intervals.cumulative(torch.full_like(first, 0.5), many) - intervals.cumulative(first, many))[
            0
        ] / between
        assert near(float((cut <= 0.5).double().mean()), float(half), 20_000)


OTHERS = {
    "impute": lambda flow, frame: flow.impute(frame),
    "predict": lambda flow, frame: flow.predict(frame, "product"),
    "an interval": lambda flow, frame: flow.sample(3, {"pieces": (10, 20)}),
    "temperature": lambda flow, frame: flow.sample(3, temperature=0.5),
}


@pytest.mark.parametrize("ask", OTHERS.values(), ids=OTHERS)
def test_densities_without_conditionals_say_which_has_them(ask):
    flow = cell_flow(max_steps=1).fit(shop(60))
    with pytest.raises(ValueError, match='fit with density="autoregressive"'):
        ask(flow, shop(60))


def test_a_day_is_all_its_instants_and_an_interval_of_days_has_the_last_one():
    noon, hours = datetime.datetime(2026, 1, 5, 12), np.random.default_rng(0).integers(0, 24 * 7, 400)
    frame = pd.DataFrame({"when": [noon + datetime.timedelta(hours=int(h)) for h in hours], "late": hours > 80})
    flow = small_flow(density="autoregressive", max_steps=30).fit(frame)
    first, last = datetime.date(2026, 1, 7), datetime.date(2026, 1, 8)
    for said, days in ((first, {first}), ((first, last), {first, last})):
        drawn = flow.sample(200, {"when": said}, random_state=0)["when"].dt
        assert set(drawn.date) == days
        assert drawn.hour.nunique() > 12
    moment = datetime.datetime(2026, 1, 7, 3)
    assert set(flow.sample(5, {"when": moment})["when"]) == {pd.Timestamp(moment)}


def test_the_order_is_that_of_the_frame(learned, tmp_path):
    learned.save(tmp_path)
    for flow in (learned, TabularFlow.load(tmp_path, device="cpu")):
        (order,) = flow.model_.some_orders(1)
        assert [flow.encoding_.variables[column] for column in order] == list(range(5))


def test_answers_are_saved_and_loaded(flow, tmp_path):
    flow.save(tmp_path)
    again, frame = TabularFlow.load(tmp_path, device="cpu"), shop()[:50]
    assert np.array_equal(flow.score_samples(frame), again.score_samples(frame))
    assert flow.predict_proba(frame, "product").equals(again.predict_proba(frame, "product"))
    asked = {"given": {"price": (1.0, 50.0), "product": ["pen", "lamp"]}, "random_state": 0}
    assert flow.sample(20, **asked).equals(again.sample(20, **asked))
    assert flow.impute(frame, random_state=0).equals(again.impute(frame, random_state=0))
