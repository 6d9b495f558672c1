"""TabularFlow from a frame to scores, rows and reasons."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from tests.estimators.frames_for_tests import (
    FRAMES,
    KINDS,
    LIBRARIES,
    cell_flow,
    dtypes,
    mixed_columns,
    small_flow,
    to_pandas,
)

from tessella.estimators import TabularFlow, conditioning


@pytest.fixture(scope="module")
def coupled():
    """Two coins that fall alike 85 times in 100, learned, and a table of them."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 600)
    b = np.where(rng.random(600) < 0.85, a, 1 - a)
    frame = pd.DataFrame({"a": a.astype(bool), "b": b.astype(bool)})
    return cell_flow(max_steps=250, learning_rate=0.01, blocks=4, width=16, samples=64).fit(frame), frame


@pytest.mark.parametrize("library", LIBRARIES)
def test_types_are_inferred(fitted, library):
    kinds = {column.name: column.kind for column in fitted[library].columns_}
    ordered = {"sex": "ordinal"} if library == "polars" else {}  # an Enum has an order
    assert kinds == KINDS | ordered


def test_types_can_be_overridden(frame):
    flow = small_flow(column_types={"children": "count", "visits": "continuous"}, max_steps=1).fit(frame)
    kinds = {column.name: column.kind for column in flow.columns_}
    assert (kinds["children"], kinds["visits"]) == ("count", "continuous")
    assert flow.sample(20)["visits"].dtype == frame["visits"].dtype


@pytest.mark.parametrize("library", LIBRARIES)
def test_samples_are_like_the_frame(fitted, columns, library):
    frame = FRAMES[library](columns)
    sample = fitted[library].sample(50)
    assert type(sample) is type(frame)
    assert list(dtypes(sample)) == list(dtypes(frame))
    plain = to_pandas(sample)
    assert list(plain) == list(columns)
    for name, values in columns.items():
        present = {value for value in values if value is not None}
        drawn = set(plain[name].dropna())
        if KINDS[name] in ("categorical", "ordinal", "boolean"):
            assert drawn <= present
        assert plain[name].isna().any() <= (None in values)


def test_libraries_agree(fitted, columns):
    """Same rows, same model: the library changes nothing (the polars Enum has an order, so it is left out)."""
    scores = [fitted[library].score_samples(FRAMES[library](columns)) for library in ("pandas", "pyarrow")]
    assert np.array_equal(*scores)
    assert np.array_equal(scores[0], fitted["pandas"].score_samples(FRAMES["polars"](columns)))


def test_columns_match_by_name(flow, frame):
    assert np.array_equal(flow.score_samples(frame), flow.score_samples(frame[frame.columns[::-1]]))


def test_dependence_is_learned(coupled):
    """Between log P of independent columns, -2 log 2, and of the distribution itself."""
    flow, frame = coupled
    truth = np.log(0.5) + 0.85 * np.log(0.85) + 0.15 * np.log(0.15)
    assert -2 * np.log(2) + 0.1 < flow.score(frame) < truth + 0.05


def test_groups_of_columns_learn_dependence_too(coupled):
    """The second coin given the first; scores in pieces are the scores of all."""
    _, frame = coupled
    flow = small_flow(max_steps=150, learning_rate=0.01, density="blocks", groups=2, width=16, samples=64).fit(frame)
    truth = np.log(0.5) + 0.85 * np.log(0.85) + 0.15 * np.log(0.15)
    assert truth - 0.1 < flow.score(frame) < truth + 0.05
    assert (flow.density_, flow.exact_, flow.groups_, flow.components_) == ("blocks", True, 2, 1)
    alike = flow.sample(400, random_state=0)
    assert 0.75 < (alike["a"] == alike["b"]).mean() < 0.95


DENSITIES = {
    "autoregressive": {"density": "autoregressive"},
    "auto": {},
    "cells": {"density": "coupling", "dim": 2, "blocks": 2},
    "pairs": {"density": "blocks", "groups": 2},
    "singles": {"density": "blocks", "groups": 3},
}


@pytest.mark.parametrize("options", DENSITIES.values(), ids=DENSITIES)
@pytest.mark.parametrize("dependent", [False, True])
def test_a_fitted_model_is_never_worse_than_its_start(options, dependent, monkeypatch):
    """On the validation rows; where nothing can be learned, a flow gives way to the mixture that it began as."""
    monkeypatch.setattr("tessella.estimators.learning.VALIDATION_ROWS", 5)  # of which training sees a few
    rows = 4000  # with a tenth of them, chance alone lets the flow win for one seed in four
    rng = np.random.default_rng(0)
    a, other = rng.integers(0, 3, rows), rng.integers(0, 3, rows)
    b = (a + rng.integers(0, 2, rows)) % 3 if dependent else other
    frame = pd.DataFrame({"a": a, "b": b, "c": rng.integers(0, 2, rows)})
    flow = small_flow(max_steps=60, learning_rate=0.02, **options).fit(frame.astype(str))
    assert flow.best_validation_ <= flow.initial_validation_
    watched = frame.astype(str).iloc[flow.parts_["validation"]]
    if flow.exact_:
        assert -flow.score(watched) == pytest.approx(flow.best_validation_, abs=1e-5)
    if options.get("density") == "coupling":
        assert dependent or flow.density_ == "mixture"
    elif not options:  # a small table of categories: the network corrects a mixture
        assert flow.start_ == f"a mixture of {flow.components_} products of categoricals"
        assert flow.components_ > 2
    else:
        assert flow.start_ == "independent columns"
        assert not dependent or flow.best_validation_ < flow.initial_validation_ - 0.1
        assert flow.density_ in (options.get("density", "autoregressive"), "mixture")


@pytest.mark.parametrize("library", LIBRARIES)
def test_groups_of_columns_take_every_kind_of_column(columns, library, tmp_path):
    """Numbers, categories, dates and missing values; conditions; saved and loaded."""
    frame = FRAMES[library](columns)
    flow = small_flow(density="blocks", groups=3, max_steps=20).fit(frame)
    assert np.isfinite(flow.score_samples(frame)).all()
    given = to_pandas(flow.sample(10, given={"sex": "F"}, random_state=0))
    assert set(given["sex"]) == {"F"}
    flow.save(tmp_path)
    loaded = TabularFlow.load(tmp_path, device="cpu")
    assert np.array_equal(flow.score_samples(frame), loaded.score_samples(frame))


def test_auto_is_the_better_of_the_exact_density_and_a_mixture(frame):
    """On validation rows; a table of few rows is one that a mixture knows better than a network."""
    flow, alone = (small_flow(density=density).fit(frame) for density in ("auto", "autoregressive"))
    assert flow.best_validation_ <= alone.best_validation_
    assert flow.density_ == "mixture"
    assert (flow.exact_, alone.exact_, alone.density_) == (True, True, "autoregressive")
    watched = frame.iloc[flow.parts_["validation"]]
    assert -flow.score(watched) == pytest.approx(flow.best_validation_, abs=1e-5)


SETTINGS = {
    "density": ({"density": "magic"}, "density: got 'magic'; expected one of auto, autoregressive, blocks, coupling"),
    "groups": ({"groups": 3}, "groups: got 3, which belongs to density='blocks'; the density is 'auto'"),
    "dim": ({"dim": 3, "density": "blocks"}, "dim: got 3, which belongs to density='coupling'"),
    "layers": ({"layers": 1, "density": "coupling"}, "layers: got 1, which belongs to density='autoregressive'"),
    "few": ({"groups": -1, "density": "blocks"}, "groups: got -1; expected at least 1"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_another_density_are_refused(case, frame):
    options, message = SETTINGS[case]
    with pytest.raises(ValueError, match=message):
        small_flow(**options).fit(frame)


def test_more_samples_are_tighter(frame):
    flow = cell_flow().fit(frame)
    assert flow.score_samples(frame, samples=64).mean() > flow.score_samples(frame, samples=1).mean()


def test_same_random_state_same_model(frame):
    first, second = (small_flow(max_steps=3).fit(frame) for _ in range(2))
    assert np.array_equal(first.score_samples(frame), second.score_samples(frame))
    assert first.sample(5).equals(second.sample(5))
    assert not first.sample(5).equals(first.sample(5, random_state=1))


def test_categories_by_dtype_have_no_order_unless_it_says_so():
    frame = pd.DataFrame({"a": pd.Categorical([1, 2] * 10), "b": pd.Categorical([1, 2] * 10, ordered=True)})
    assert [column.kind for column in small_flow(max_steps=1).fit(frame).columns_] == ["categorical", "ordinal"]


def test_array_in_array_out():
    table = np.random.default_rng(0).standard_normal((60, 3)).astype(np.float32)
    table[::7, 1] = np.nan
    sample = small_flow(max_steps=2).fit(table).sample(9)
    assert (sample.dtype, sample.shape) == (np.float32, (9, 3))
    assert np.isfinite(sample[:, [0, 2]]).all()


def test_masses_of_a_discrete_frame_sum_to_at_most_one():
    rng = np.random.default_rng(0)
    a = rng.choice(["x", "y", "z"], 300)
    frame = pl.DataFrame({"a": a, "b": np.where(rng.random(300) < 0.8, a == "x", a == "y")})
    flow = cell_flow(max_steps=60).fit(frame)
    grid = pl.DataFrame({"a": ["x", "y", "z"] * 2, "b": [True] * 3 + [False] * 3})
    total = np.exp(flow.score_samples(grid, samples=2000)).sum()
    assert 0.85 < total < 1.02


def test_a_density_integrates_to_one():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(400) < 0.5, -300, 200) + 30 * rng.standard_normal(400)
    flow = cell_flow(max_steps=60).fit(values[:, None])
    grid = np.concatenate([np.linspace(-1000, 1000, 801), np.geomspace(1001, 1e6, 60), -np.geomspace(1001, 1e6, 60)])
    grid.sort()
    total = np.trapezoid(np.exp(flow.score_samples(grid[:, None], samples=100)), grid)
    assert 0.9 < total < 1.02


def test_time_budget_is_kept(frame):
    flow = small_flow(max_steps=None, time_budget=3.0).fit(frame)
    assert flow.history_[-1]["seconds"] < 6
    assert flow.n_iter_ > 1


def test_conditions_hold_exactly(flow):
    sample = flow.sample(30, {"sex": "F", "member": True, "country": "Chad"})
    assert set(sample["sex"]) == {"F"}
    assert set(sample["member"]) == {True}
    assert flow.effective_sample_size_ == 30


def test_conditions_on_numbers_and_missing_values(flow, frame):
    height = float(frame["height"][3])
    sample = flow.sample(20, {"height": height, "pay": None, "day": datetime.date(2020, 5, 1), "note": None})
    assert set(sample["height"]) == {height}
    assert sample["pay"].isna().all()
    assert sample["note"].isna().all()
    assert set(sample["day"]) == {pd.Timestamp(2020, 5, 1)}
    assert flow.effective_sample_size_ == 20


def test_resampling_agrees_with_rejection(coupled):
    flow, _ = coupled
    torch.manual_seed(0)
    given = {0: [1.0]}
    conditions = (
        conditioning.CodedConditions(flow.model_, given)
        if flow.exact_
        else conditioning.FlowConditions(flow.model_, flow.encoding_, given)
    )
    with torch.no_grad():
        exact = conditions.draws(4000)[:, 1].mean()
        rows, log_weight = conditions.proposals(4000)
    assert bool((rows[:, 0] == 1).all())
    assert abs(float(log_weight.softmax(0) @ rows[:, 1]) - exact) < 0.08
    assert float(exact) > 0.6  # there is something to agree about


def test_rare_conditions_warn(flow, monkeypatch):
    few = conditioning.Conditioned(torch.zeros(100, flow.encoding_.shape.variables).double(), 1.5)
    monkeypatch.setattr(conditioning, "sample_given", lambda *_: few)
    with pytest.warns(UserWarning, match=r"worth 1\.5 independent"):
        flow.sample(100, {"sex": "F"})


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_odd_value_is_found_and_named(fitted, library):
    columns = mixed_columns(100, seed=2)
    columns["height"][7], columns["pay"][7] = 4000.0, 1500.0
    found = fitted[library].anomalies(FRAMES[library](columns), top=4)
    table = to_pandas(found)
    assert list(table)[:5] == ["row", "score", "surprise", "column_1", "contribution_1"]
    assert (table["row"][0], table["column_1"][0]) == (7, "height")
    assert table["surprise"].is_monotonic_decreasing
    assert table["contribution_1"][0] > 2


def test_anomalies_of_an_array():
    table = np.random.default_rng(0).standard_normal((60, 2))
    found = small_flow(max_steps=2).fit(table).anomalies(table, top=3)
    assert found.dtype.names == (
        "row",
        "score",
        "surprise",
        *("column_1", "contribution_1", "column_2", "contribution_2"),
    )
    assert len(found) == 3


@pytest.mark.parametrize("options", DENSITIES.values(), ids=DENSITIES)
def test_embedding_has_names_and_places(options, frame):
    flow = small_flow(max_steps=2, **options).fit(frame)
    embedding = flow.embedding("note")
    assert embedding.categories == ("late", "lost", None)
    assert len(embedding.positions) == 3
    assert len(np.unique(embedding.positions, axis=0)) == 3
    with pytest.raises(ValueError, match="'height': is continuous"):
        flow.embedding("height")
    with pytest.raises(ValueError, match="single value 'Chad'"):
        flow.embedding("country")


def test_ordinal_anchors_start_in_order():
    frame = pd.DataFrame({"grade": np.arange(60) % 5, "x": np.arange(60) % 2 == 0})
    positions = cell_flow(max_steps=1).fit(frame).embedding("grade").positions
    assert (np.diff(positions[:, 0]) > 0).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_saved_and_loaded_is_the_same_bit_by_bit(fitted, columns, library, tmp_path):
    flow, frame = fitted[library], FRAMES[library](columns)
    flow.save(tmp_path)
    loaded = TabularFlow.load(tmp_path, device="cpu")
    assert np.array_equal(flow.score_samples(frame), loaded.score_samples(frame))
    assert flow.sample(20).equals(loaded.sample(20))
    assert loaded.columns_ == flow.columns_
    assert loaded.layout_ == flow.layout_
    assert loaded.get_params() == flow.get_params()


def test_categories_keep_their_types(tmp_path):
    values = [1, 2.5, "1", None, datetime.date(2020, 1, 2)] * 6
    days = pd.Categorical(pd.to_datetime(["2020-01-01", "2020-01-02"] * 15))
    frame = pd.DataFrame({"v": pd.Series(values, dtype=object), "w": range(30), "day": days})
    flow = small_flow(max_steps=1).fit(frame)
    flow.save(tmp_path)
    loaded = TabularFlow.load(tmp_path)
    kinds = [type(category) for category in loaded.columns_[0].categories]
    assert kinds == [int, float, str, datetime.date, type(None)]
    assert list(loaded.sample(3).dtypes) == list(frame.dtypes)


def test_a_folder_of_another_format_is_refused(flow, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no estimator\.json"):
        TabularFlow.load(tmp_path)
    flow.save(tmp_path)
    path = tmp_path / "estimator.json"
    path.write_text(path.read_text().replace('"format": 3', '"format": 99'))
    with pytest.raises(ValueError, match="got format 99"):
        TabularFlow.load(tmp_path)
    path.write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        TabularFlow.load(tmp_path)
