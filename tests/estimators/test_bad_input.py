"""What happens to tables that nobody meant to bring."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.estimators.frames_for_tests import FRAMES, mixed_columns, small_flow


def two(rows: int = 20, **columns) -> pd.DataFrame:
    return pd.DataFrame({"a": ["x", "y"] * (rows // 2), "v": np.linspace(0, 1, rows), **columns})


FIT = {
    "no rows": (lambda: two(0), "too few rows"),
    "one row": (lambda: two(2)[:1], "minimum of 2 is required"),
    "no columns": (lambda: pd.DataFrame(index=range(5)), "no columns"),
    "all missing": (lambda: two(gone=[None] * 20), "'gone': all 20 values are missing; drop the column"),
    "duplicate names": (lambda: two().set_axis(["a", "a"], axis=1), "'a' appear more than once"),
    "infinity": (lambda: two(w=[*range(19), np.inf]), "'w', row 19: is infinite"),
    "infinite category": (lambda: two(w=[np.inf] * 20), "'w', row 0: is infinite"),
    "lists": (lambda: two(w=[[1]] * 20), "convert that column"),
    "durations": (lambda: two(w=pd.to_timedelta(range(20), unit="D")), "convert that column"),
    "one dimension": (lambda: np.zeros(5), "Expected 2D array"),
    "complex": (lambda: np.zeros((5, 2), complex), "Complex data not supported"),
    "no frame": (lambda: {"a": [1, 2]}, "expected a pandas, polars or pyarrow table"),
    "a lazy frame": (lambda: pl.LazyFrame({"a": [1, 2]}), "expected a pandas, polars or pyarrow table"),
    "odd labels": (lambda: pd.DataFrame({(1, 2): [1, 2]}), "expected text or integers"),
}


@pytest.mark.parametrize("case", FIT)
def test_fit_says_what_is_wrong(case):
    make, message = FIT[case]
    with pytest.raises((TypeError, ValueError), match=message):
        small_flow().fit(make())


KINDS = {
    "unknown kind": ({"a": "text"}, "column_types\\['a'\\]: got 'text'; expected one of categorical"),
    "unknown column": ({"b": "count"}, "column_types: got 'b'; expected columns"),
    "fractions as counts": ({"v": "count"}, "'v', row 1: got .*; expected integers"),
    "text as numbers": ({"a": "continuous"}, "'a', row 0: got 'x' \\(str\\); expected numbers"),
    "numbers as dates": ({"v": "date"}, "'v', row 0: got 0.0 \\(float\\); expected dates"),
    "twenty booleans": ({"v": "boolean"}, "'v': got 20 different values; expected two"),
    "constant as continuous": ({"c": "continuous"}, "'c': all values are 1; a continuous column needs at least two"),
}


@pytest.mark.parametrize("case", KINDS)
def test_a_type_that_does_not_fit_is_an_error(case):
    kinds, message = KINDS[case]
    with pytest.raises((TypeError, ValueError), match=message):
        small_flow(column_types=kinds).fit(two(c=1))


PARAMETERS = {
    "width": (0, "width: got 0; expected at least 1"),
    "unseen": ("ignore", "unseen: got 'ignore'"),
    "device": ("tpu", "device: got 'tpu'"),
    "validation_fraction": (1.5, "validation_fraction: got 1.5"),
    "max_steps": (0, "steps: got 0"),
    "time_budget": (-1.0, "time_budget: got -1.0"),
    "random_state": (-1, "random_state: got -1; expected 0 to 4294967295"),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_bad_parameter_is_named(name):
    value, message = PARAMETERS[name]
    with pytest.raises(ValueError, match=message):
        small_flow(**{name: value}).fit(two())


def changed(**columns) -> pd.DataFrame:
    return FRAMES["pandas"](mixed_columns(5)).assign(**columns)


SCORE = {
    "unseen category": (
        lambda: changed(children=99),
        "'children', row 0: value 99 was not seen in training \\(.* known: 0, 1",
    ),
    "other type": (lambda: changed(sex=1), "'sex', row 0: value 1 was not seen .*; this one is int"),
    "constant changed": (
        lambda: changed(country="Mali"),
        "'country', row 0: value 'Mali' was not seen .*1 known: 'Chad'",
    ),
    "first missing": (lambda: changed(height=[1.0, np.nan, 1, 1, 1]), "'height', row 1: is missing"),
    "missing category": (lambda: changed(sex=None), "'sex', row 0: value missing was not seen"),
    "text for numbers": (lambda: changed(height="tall"), "'height', row 0: got 'tall' \\(str\\); expected numbers"),
    "number for dates": (lambda: changed(day=3), "'day', row 0: got 3 \\(int\\); expected dates"),
    "fraction of a count": (lambda: changed(visits=1.5), "'visits', row 0: got 1.5; expected integers"),
    "infinity": (lambda: changed(height=-np.inf), "'height', row 0: is infinite"),
    "column missing": (lambda: changed().drop(columns="sex"), "columns: 'sex' missing; expected the 9 columns"),
    "column extra": (lambda: changed(more=1), "columns: 'more' not seen in fit"),
    "no rows": (lambda: changed()[:0], "too few rows"),
    "array of other width": (lambda: np.zeros((2, 3)), "X has 3 features, but TabularFlow is expecting 9"),
}


@pytest.mark.parametrize("case", SCORE)
def test_score_says_what_is_wrong(flow, case):
    make, message = SCORE[case]
    with pytest.raises((TypeError, ValueError), match=message):
        flow.score_samples(make())


CONDITIONS = {
    "unknown column": ({"age": 3}, "column: got 'age'; expected one of 'sex'"),
    "nearly a column": ({"heigth": 3}, "column: got 'heigth'; .*did you mean 'height'"),
    "nearly a category": ({"note": "latte"}, "impossible, .*'latte' was not seen .*did you mean 'late'"),
    "an interval beyond": ({"height": (9e8, 9e9)}, "between 900000000.0 and 9000000000.0 is impossible, training saw"),
    "an interval the wrong way": ({"height": (180, 160)}, "'height': between 180 and 160 is impossible"),
    "an interval of texts": ({"height": ("a", "b")}, "'height': got 'a'; expected numbers, low and high"),
    "an interval of categories": ({"sex": ("F", "M")}, "'sex': got .*; expected a list of its categories, since it is"),
    "three ends": ({"height": (1, 2, 3)}, "'height': got .1, 2, 3.; expected .low, high."),
    "no category": ({"sex": []}, "'sex': got no values; expected at least one category"),
    "a list of numbers": ({"height": [170.0]}, "'height': got a list of values; expected .low, high., since it is"),
    "no category between": ({"children": (50, 60)}, "'children': no category is between 50 and 60: probability 0"),
    "category of the dtype that no row has": ({"sex": "X"}, "impossible, .*'sex': value 'X' was not seen"),
    "unknown number": ({"height": 9e9}, "'height': 9000000000.0 is impossible, training saw"),
    "never missing": ({"height": None}, "impossible, .*'height': is missing"),
    "another constant": ({"country": "Mali"}, "impossible, .*'country'"),
}


@pytest.mark.parametrize("case", CONDITIONS)
def test_an_impossible_condition_is_an_error(flow, case):
    conditions, message = CONDITIONS[case]
    with pytest.raises(ValueError, match=message):
        flow.sample(3, conditions)


def test_no_rows_cannot_be_sampled(flow):
    with pytest.raises(ValueError, match="n: got 0"):
        flow.sample(0)


def test_unseen_can_count_as_missing():
    frame = two(note=["p", None] * 10)
    flow = small_flow(max_steps=1, unseen="missing").fit(frame)
    strange = frame.assign(note="q")
    assert np.array_equal(flow.score_samples(strange), flow.score_samples(frame.assign(note=None)))
    with pytest.raises(ValueError, match="'a', row 0: value 'q' was not seen"):
        flow.score_samples(frame.assign(a="q"))


def test_a_single_row_can_be_scored(flow, frame):
    assert flow.score_samples(frame[:1]).shape == (1,)


def test_a_table_of_constants_has_probability_near_one():
    frame = pd.DataFrame({"a": ["x"] * 10, "b": [3] * 10})
    flow = small_flow(max_steps=100).fit(frame)
    assert flow.score(frame) == pytest.approx(0, abs=1e-6)
    assert flow.sample(2).equals(frame[:2])


def test_a_huge_cell_is_a_category_like_any_other():
    huge = "x" * 10_000_000
    frame = two(w=[huge, "small"] * 10)
    flow = small_flow(max_steps=1).fit(frame)
    assert set(flow.sample(40)["w"]) <= {huge, "small"}
    with pytest.raises(ValueError, match=r"\(10,000,001 characters\)") as caught:
        flow.score_samples(frame.assign(w=huge + "y"))
    assert len(str(caught.value)) < 500


def test_integers_as_labels():
    frame = pd.DataFrame(np.arange(40).reshape(20, 2) % 3)
    assert list(small_flow(max_steps=1).fit(frame).sample(2).columns) == [0, 1]
