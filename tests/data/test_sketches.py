"""What is learned about a column piece by piece is what is learned about it at once."""

import datetime
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.data.splitting import hashed
from tessella.data.tables.cells import Cells, Coded, coded, different, plain, some
from tessella.data.tables.columns import MOST_CATEGORIES, learn
from tessella.data.tables.sketches import Sketch
from tessella.data.tables.values import Value

DAY = datetime.date(2020, 2, 1)
FLOATS = st.floats(-1e9, 1e9, allow_nan=False)
VALUES = {
    "few integers": st.integers(0, 5),
    "integers": st.integers(-(10**9), 10**9),
    "prices": st.integers(0, 300).map(lambda cents: cents / 100),
    "numbers": FLOATS,
    "zeros and numbers": st.one_of(st.just(0.0), FLOATS),
    "texts": st.text("ab", max_size=3),
    "booleans": st.booleans(),
    "days": st.integers(0, 900).map(lambda days: DAY + datetime.timedelta(days)),
    "minutes": st.integers(0, 10**6).map(lambda m: datetime.datetime(1960, 1, 1) + datetime.timedelta(minutes=m)),
}


def as_cells(values: list[Value]) -> Cells:
    """As files have them: numbers and dates as arrays, integers only where none is missing."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {float}:
        return np.array([np.nan if value is None else value for value in values])
    if kinds == {int} and None not in values:
        return np.array(values)
    if kinds and all(issubclass(kind, datetime.date) for kind in kinds):
        unit = "ms" if kinds == {datetime.datetime} else "D"
        return np.array(values, dtype=f"datetime64[{unit}]")
    order = list(dict.fromkeys(values))
    return Coded(order, np.array([order.index(value) for value in values], dtype=np.int64))


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_sketch_with_all_values_learns_what_learn_does(kind: str, data: st.DataObject):
    gaps = data.draw(st.booleans())
    cell = st.one_of(st.none(), VALUES[kind]) if gaps else VALUES[kind]
    values = data.draw(st.lists(cell, min_size=2, max_size=80))
    pieces = np.array_split(np.arange(len(values)), data.draw(st.integers(1, 4)))
    sketch = Sketch("x")
    for piece in pieces:
        sketch.add(as_cells([values[i] for i in piece]))
    try:
        expected = learn("x", values, None, None)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            sketch.column(values)
        return
    found = sketch.column(values)
    assert found.to_json() == expected.to_json()
    np.testing.assert_array_equal(found.encode_cells(as_cells(values)), expected.encode(values))


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_sketch_with_a_sample_accepts_every_value(kind: str, data: st.DataObject):
    values = data.draw(st.lists(VALUES[kind], min_size=40, max_size=120))
    sketch = Sketch("x")
    for piece in np.array_split(np.arange(len(values)), 3):
        sketch.add(as_cells([values[i] for i in piece]))
    found = sketch.column(values[:10])
    encoded = found.encode(values)
    if found.number:
        assert (found.low, found.high) == (encoded.min(), encoded.max())
    assert sum(found.frequencies) == len(values)


def test_a_value_that_came_late_decides_the_type():
    """Integers in every piece but one, where a single fraction hides: no sample would have it."""
    sketch = Sketch("x")
    for _ in range(3):
        sketch.add(np.arange(1000))
    assert sketch.column(list(range(50))).kind == "count"
    sketch.add(np.array([np.pi]))
    assert sketch.column(list(range(50))).kind == "continuous"


def test_texts_are_counted_up_to_the_most_there_may_be():
    sketch, declared = Sketch("x"), Sketch("x", "categorical")
    names: list[Value] = [f"name {i}" for i in range(MOST_CATEGORIES + 2)]
    for one in (sketch, declared):
        one.add(Coded(names, np.arange(len(names))))
        one.add(Coded(names, np.arange(len(names))))
    assert len(sketch.counts) <= MOST_CATEGORIES + 1
    with pytest.raises(ValueError, match="more than 20,000 different values"):
        sketch.column(names[:5])
    assert set(declared.column(names[:5]).frequencies) == {2}


def test_cells_are_what_they_were():
    for cells in (np.array([1.5, np.nan, 1.5]), Coded(["a", None], np.array([1, 0, 1])), np.array([3, 1, 3])):
        values = plain(cells)
        assert plain(coded(cells)) == values
        assert plain(some(cells, np.array([2, 0]))) == [values[2], values[0]]
        found, times = different(cells)
        assert {value: values.count(value) for value in found} == dict(zip(found, times.tolist(), strict=True))
    few = some(Coded(["a", "b", "c"], np.array([2, 0, 1])), np.array([0]))
    assert isinstance(few, Coded)
    assert few.values == ["c"]


def test_hashes_are_uniform_and_belong_to_rows_alone():
    whole = hashed(np.arange(100_000), seed=3)
    assert np.array_equal(hashed(np.arange(500, 700), seed=3), whole[500:700])
    shares = np.bincount((10 * whole).astype(int), minlength=10) / len(whole)
    assert abs(shares - 0.1).max() < 0.005
    assert abs(np.corrcoef(whole, hashed(np.arange(100_000), seed=4))[0, 1]) < 0.02
    assert abs(np.corrcoef(whole[1:], whole[:-1])[0, 1]) < 0.02
