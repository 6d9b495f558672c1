import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tessella.data import Schema, Variable

names = st.text(max_size=8)
variables = st.builds(Variable, names, st.lists(names, min_size=1, max_size=9, unique=True).map(tuple))
schemas = st.lists(variables, min_size=1, max_size=5).map(lambda several: Schema(tuple(several)))


@st.composite
def schema_and_rows(draw: st.DrawFn) -> tuple[Schema, list[tuple[str, ...]]]:
    schema = draw(schemas)
    row = st.tuples(*(st.sampled_from(variable.categories) for variable in schema.variables))
    return schema, draw(st.lists(row, max_size=6))


@given(schema_and_rows())
def test_decode_undoes_encode(case: tuple[Schema, list[tuple[str, ...]]]) -> None:
    schema, rows = case
    codes = schema.encode(rows)
    assert codes.dtype == torch.int64
    assert codes.shape == (len(rows), len(schema.variables))
    assert schema.decode(codes) == rows


@given(schemas)
def test_encode_undoes_decode_on_every_code(schema: Schema) -> None:
    most = max(schema.counts)
    codes = torch.stack([torch.arange(most).clamp(max=count - 1) for count in schema.counts], dim=1)
    assert torch.equal(schema.encode(schema.decode(codes)), codes)


@given(schemas)
def test_json_round_trip(schema: Schema) -> None:
    assert Schema.from_json(schema.to_json()) == schema


ODOR = Schema((Variable("size", ("s", "l")), Variable("odor", tuple("acflmnpsy"))))


def test_an_unknown_value_is_named_with_its_column() -> None:
    expected = r"column 'odor': value 'q' was not seen in training \(9 known values: a, c, f, \.\.\.\)$"
    with pytest.raises(ValueError, match=expected):
        ODOR.encode([("s", "a"), ("s", "q")])


def test_a_number_is_told_that_values_are_text() -> None:
    with pytest.raises(ValueError, match=r"value 1 was not seen.*values are text, this one is int"):
        Variable("children", ("1", "2")).encode([1])  # type: ignore[list-item]  # the wrong type is the point


def test_a_row_of_the_wrong_length_is_named() -> None:
    with pytest.raises(ValueError, match="row 1: got 1 values; expected 2"):
        ODOR.encode([("s", "a"), ("s",)])


def test_a_code_out_of_range_is_named_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"value 9 at \[0, 1\] is out of range; expected 0 <= codes < 9"):
        ODOR.decode(torch.tensor([[0, 9]]))


@pytest.mark.parametrize("categories", [(), ("a", "a")], ids=["none", "twice"])
def test_categories_must_be_some_and_different(categories: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"column 'x'.*expected at least one, all different"):
        Variable("x", categories)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"variables": [{"name": "x"}]}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected what Schema.to_json writes"):
        Schema.from_json(text)
