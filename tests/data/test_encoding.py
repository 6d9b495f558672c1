"""Columns of plain values <-> batches <-> rows as matrices, each the inverse of the other; errors name the column."""

import datetime
import json

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.estimators.columns_for_tests import KNOWN

from tessella.data import Column, Encoding
from tessella.data.tables.columns import learn
from tessella.data.tables.dates import UNITS, instant, milliseconds, unit, unit_name
from tessella.data.tables.described import read_encoding
from tessella.data.tables.values import Value

Values = list[list[Value]]

DATES = st.dates(datetime.date(1990, 1, 1), datetime.date(2030, 1, 1))
KINDS: dict[str, st.SearchStrategy[Value]] = {
    "categorical": st.one_of(st.text(max_size=3), st.integers(2, 4), DATES),
    "ordinal": st.integers(-3, 3),
    "boolean": st.booleans(),
    "count": st.integers(-(10**6), 10**6),
    "grid": st.integers(-5000, 5000).map(lambda k: k / 100),
    "continuous": st.one_of(st.sampled_from([0.0, 1.5]), st.floats(-1e6, 1e6)),
    "date": DATES,
}
NUMBERS = ("count", "grid", "continuous", "date")


@st.composite
def columns(draw: st.DrawFn, rows: int) -> tuple[str, list[Value]]:
    """A kind, and values of it, some of them missing; numbers have two different values."""
    kind = draw(st.sampled_from(list(KINDS)))
    present = draw(st.lists(KINDS[kind], min_size=2, max_size=rows, unique=kind in NUMBERS))
    fill = st.one_of(st.sampled_from(present), st.none())
    values = [*present, *draw(st.lists(fill, min_size=rows - len(present), max_size=rows - len(present)))]
    return kind, draw(st.permutations(values))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Encoding, Values]:
    rows = draw(st.integers(2, 25))
    drawn = draw(st.lists(columns(rows), min_size=1, max_size=5))
    learned = [learn(f"column {i}", values, kind, None) for i, (kind, values) in enumerate(drawn)]
    return Encoding(tuple(learned)), [values for _, values in drawn]


def same(one: tuple[torch.Tensor, ...], other: tuple[torch.Tensor, ...]) -> bool:
    return len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@given(tables())
def test_decode_undoes_encode(case: tuple[Encoding, Values]) -> None:
    encoding, values = case
    batch = encoding.encode(values)
    assert encoding.decode(*batch) == values
    assert encoding.by_name(*batch) == {f"column {i}": column for i, column in enumerate(values)}


@given(st.lists(st.datetimes(datetime.datetime(1, 1, 2)), min_size=2, max_size=9), st.sampled_from(list(UNITS)))
def test_instants_come_back_in_their_unit(values: list[datetime.datetime], name: str) -> None:
    """What is less than a unit is left out before; afterwards an instant counts as the last multiple before it."""
    whole: list[Value] = [instant(milliseconds(value) // UNITS[name] * UNITS[name]) for value in values]
    assume(len(set(whole)) > 1)
    column = learn("when", whole, None, None)
    assert column.decode(column.encode(whole)) == whole
    assert UNITS[name] <= unit(column.step)
    assert column.measure == f"masses on {unit_name(column.step)}"
    assert read_encoding(Encoding((column,)).to_json()).columns == (column,)
    if unit_name(column.step) == name:
        assert column.decode(column.encode(values)) == whole


@pytest.mark.parametrize("name", KNOWN)
def test_numbers_come_back_with_their_atoms_and_missing_values(name: str) -> None:
    drawn = KNOWN[name].draw(np.random.default_rng(0), 500)
    values = [None if np.isnan(value) else value for value in drawn.tolist()]
    encoding = Encoding((learn(name, values, None, None),))
    assert encoding.decode(*encoding.encode([values])) == [values]


@given(tables())
def test_split_and_join_are_inverse(case: tuple[Encoding, Values]) -> None:
    encoding, values = case
    batch = encoding.encode(values)
    rows = encoding.join(*batch)
    assert same(encoding.split(rows), batch)
    assert torch.equal(encoding.join(*encoding.split(rows)), rows)
    assert torch.equal(rows, encoding.assemble([c.encode(v) for c, v in zip(encoding.columns, values, strict=True)]))


@given(tables())
def test_batches_have_the_shape_that_models_are_told(case: tuple[Encoding, Values]) -> None:
    encoding, values = case
    shape, (codes, *numbers) = encoding.shape, encoding.encode(values)
    assert (codes.dtype, codes.shape) == (torch.int64, (len(values[0]), len(shape.counts)))
    assert bool(((codes >= 0) & (codes < torch.tensor(shape.counts))).all())
    assert [(x.dtype, x.shape) for x in numbers] == [(torch.float64, (len(codes), shape.numbers))] * bool(shape.numbers)
    assert len(shape.counts) == len(shape.ordered)
    for i, (whole, indicator) in enumerate(zip(shape.whole, shape.indicators, strict=True)):
        there = numbers[0][:, i] if indicator < 0 else numbers[0][codes[:, indicator] == 1, i]
        assert not whole or torch.equal(there, there.round())
        assert indicator < 0 or bool((numbers[0][codes[:, indicator] != 1, i] == 0).all())


@given(tables())
def test_encode_undoes_decode_on_every_code(case: tuple[Encoding, Values]) -> None:
    encoding = Encoding(tuple(column for column in case[0].columns if not column.number))
    codes = torch.stack([torch.arange(max(encoding.counts)).clamp(max=count - 1) for count in encoding.counts], dim=1)
    if encoding.categorical:
        assert same(encoding.encode(encoding.decode(codes)), (codes,))


@given(tables())
def test_json_round_trip(case: tuple[Encoding, Values]) -> None:
    said = case[0].to_json()
    assert json.loads(json.dumps(said)) == said
    assert Encoding.from_json(said) == case[0]


ODOR = Encoding((Column("size", "categorical", ("s", "l")), Column("odor", "categorical", tuple("acflmnpsy"))))
MIXED = Encoding((ODOR.columns[0], Column("weight", "count", low=0, high=9, whole=True)))


def test_no_rows_have_no_codes() -> None:
    assert [tensor.shape for tensor in MIXED.encode([[], []])] == [(0, 1), (0, 1)]
    assert MIXED.decode(*MIXED.encode([[], []])) == [[], []]


def test_columns_that_nothing_was_counted_of_are_whole() -> None:
    weight = MIXED.columns[1]
    assert (weight.missing, weight.states, weight.state_frequencies) == (False, (float("inf"),), (0,))
    atoms = Column("price", "continuous", atoms=(0.0,))
    assert (len(atoms.states), atoms.state_frequencies) == (2, (0, 0))


ERRORS = {
    "unknown value": (
        lambda: ODOR.encode([["s", "s"], ["a", "q"]]),
        r"column 'odor', row 1: value 'q' was not seen in training \(9 known: 'a', 'c', 'f', 'l', 'm', 'n', \.\.\.\)",
    ),
    "number for a text": (
        lambda: ODOR.encode([[1], ["a"]]),
        r"column 'size', row 0: value 1 was not seen.*this one is int",
    ),
    "missing number": (lambda: MIXED.encode([["s"], [None]]), "column 'weight', row 0: is missing"),
    "too few columns": (lambda: ODOR.encode([["s"]]), "columns: got 1; expected 2"),
    "short column": (lambda: ODOR.encode([["s", "l"], ["a"]]), "column 'odor': got 1 values; expected 2"),
    "code out of range": (
        lambda: ODOR.decode(torch.tensor([[0, 9]])),
        r"value 9 at \[0, 1\] is out of range; expected 0 <= codes < 9",
    ),
    "numbers left out": (lambda: MIXED.decode(torch.tensor([[0]])), r"numbers: got shape \(1, 0\); expected .*1, 1"),
    "numbers too many": (
        lambda: ODOR.decode(torch.tensor([[0, 0]]), torch.ones(1, 1)),
        r"numbers: got shape \(1, 1\); expected .*1, 0",
    ),
    "narrow rows": (lambda: MIXED.split(torch.zeros(2, 1)), r"rows: got shape \(2, 1\); expected .*G \+ R"),
    "unknown column": (lambda: ODOR.index("taste"), "column: got 'taste'; expected one of 'size', 'odor'"),
    "no categories": (lambda: Column("x", "categorical"), r"column 'x': got .*expected at least one, all different"),
    "a category twice": (lambda: Column("x", "categorical", ("a", "a")), r"column 'x'.*at least one, all different"),
}


@pytest.mark.parametrize(("ask", "message"), ERRORS.values(), ids=ERRORS)
def test_errors_teach(ask, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask()


@pytest.mark.parametrize(
    "said", [{"a": 1}, [{}], [{"name": "x"}], [{"name": "x", "kind": "categorical", "categories": []}], 3]
)
def test_other_json_is_refused(said) -> None:
    with pytest.raises(ValueError, match=r"expected what Encoding.to_json writes"):
        Encoding.from_json(said)
