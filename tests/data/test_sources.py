"""Sources: a batch is what indexing by hand gives, wherever the tensors are; what cannot work is refused by name."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tessella import checks
from tessella.contracts import Batch, Source
from tessella.data import PaddedSets, Rows, SymmetricPatches, Windows

SIZES = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)


def rows(number: int = 7) -> Rows:
    return Rows(torch.arange(3 * number).view(number, 3), torch.linspace(0, 1, number))


def ragged(sizes: list[int]) -> list[Tensor]:
    """Different items, none of them 0."""
    return list(torch.arange(1, 1 + sum(sizes)).split(sizes))


def sets(sizes: tuple[int, ...] = (2, 0, 4, 1)) -> PaddedSets:
    return PaddedSets(ragged(list(sizes)))


def windows() -> Windows:
    return Windows(torch.arange(20, dtype=torch.uint8), length=5, stride=3)


def patches() -> SymmetricPatches:
    return SymmetricPatches(torch.randn(4, 8), "square")


CASES = {"rows": rows, "sets": sets, "windows": windows, "patches": patches}


def same(one: Batch, other: Batch) -> bool:
    return len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_a_batch_is_its_examples_one_by_one(make):
    source = make()
    assert isinstance(source, Source)
    order = torch.randperm(len(source)).repeat(2)
    alone = [source.batch(index[None]) for index in order]
    assert same(source.batch(order), tuple(map(torch.cat, zip(*alone, strict=True))))
    assert all(len(tensor) == 0 for tensor in source.batch(order[:0]))


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_shapes_are_those_of_the_batch_of_all(make):
    source = make()
    assert source.shapes == [list(tensor.shape) for tensor in source.batch(torch.arange(len(source)))]


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_moving_keeps_what_there_is(make):
    source = make()
    moved, everything = source.to("cpu"), torch.arange(len(source))
    assert type(moved) is type(source)
    assert moved.shapes == source.shapes
    assert same(moved.batch(everything), source.batch(everything))


@pytest.mark.parametrize("make", [rows, windows, patches])
def test_batches_come_from_the_device_that_was_asked_for(make):
    with checks.values(False):
        batch = make().to("meta").batch(torch.tensor([1, 0]))
    assert all(tensor.is_meta for tensor in batch)


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
@pytest.mark.parametrize("index", [-1, 100])
def test_places_that_are_not_there_are_named(make, index: int):
    source = make()
    with pytest.raises(ValueError, match=rf"indices: value {index} at \[1\] .* expected 0 <= indices < {len(source)}"):
        source.batch(torch.tensor([0, index]))
    with pytest.raises(ValueError, match=r"indices: got a tensor of shape \(1, 1\); expected integers, \(B,\)"):
        source.batch(torch.tensor([[0]]))
    with pytest.raises(TypeError, match=r"indices: got a tensor of torch\.float64; expected a tensor of integers"):
        source.batch(torch.tensor([0.0]))


@given(number=st.integers(1, 9), trailing=st.lists(st.integers(0, 3), max_size=2), tensors=st.integers(1, 3))
def test_rows_are_indexed(number: int, trailing: list[int], tensors: int):
    given_rows = [torch.randn(number, *trailing[:depth]) for depth in range(tensors)]
    source, order = Rows(*given_rows), torch.randint(number, (5,))
    assert len(source) == number
    assert same(source.batch(order), tuple(tensor[order] for tensor in given_rows))


@given(sizes=SIZES, extra=st.one_of(st.none(), st.integers(0, 3)))
def test_sets_are_padded(sizes: list[int], extra: int | None):
    given_sets, size = ragged(sizes), max(sizes) + (extra or 0)
    source = PaddedSets(given_sets, size=None if extra is None else size, padding=-1)
    order = torch.randint(len(sizes), (6,))
    items, mask = source.batch(order)
    assert len(source) == len(sizes)
    for row, here, index in zip(items.tolist(), mask.tolist(), order.tolist(), strict=True):
        absent = size - sizes[index]
        assert row == given_sets[index].tolist() + [-1] * absent
        assert here == [True] * sizes[index] + [False] * absent


@given(sizes=SIZES)
def test_flat_items_and_offsets_are_the_same_sets(sizes: list[int]):
    offsets = torch.tensor([0, *sizes]).cumsum(0)
    flat, listed = PaddedSets(torch.cat(ragged(sizes)), offsets), PaddedSets(ragged(sizes))
    everything = torch.arange(len(sizes))
    assert same(flat.batch(everything), listed.batch(everything))


@given(total=st.integers(1, 40), length=st.integers(1, 12), stride=st.one_of(st.none(), st.integers(1, 15)))
def test_windows_are_slices(total: int, length: int, stride: int | None):
    text, step = torch.randperm(total), stride or length
    if total < length:
        with pytest.raises(ValueError, match=f"text: got {total} characters; expected at least length = {length}"):
            Windows(text, length, stride)
        return
    source = Windows(text, length, stride)
    starts = range(0, total - length + 1, step)
    expected = [text[start : start + length].tolist() for start in starts]
    assert source.batch(torch.arange(len(source)))[0].tolist() == expected


def test_sources_share_the_memory_of_what_they_are_given():
    text, items = torch.arange(10), torch.arange(4)
    source, flat = Windows(text, 5), PaddedSets(items, torch.tensor([0, 4]))
    text[0], items[0] = 99, 99
    assert source.batch(torch.tensor([0]))[0][0, 0] == 99
    assert flat.batch(torch.tensor([0]))[0][0, 0] == 99


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_a_batch_is_made_without_a_look_at_values(make):
    """It compiles to one graph: nothing in it waits for a GPU."""
    source = make()
    with checks.values(False):
        batch = torch.compile(source.batch, backend="eager", fullgraph=True)(torch.tensor([1, 0]))
    assert same(batch, source.batch(torch.tensor([1, 0])))


ERRORS = {
    "no rows at all": (lambda: Rows(), ValueError, "tensors: got none"),
    "not a tensor": (lambda: Rows([1, 2]), TypeError, r"tensors\[0\]: got list; expected a tensor"),
    "no rows": (
        lambda: Rows(torch.zeros(0, 2)),
        ValueError,
        r"tensors\[0\]: got shape \(0, 2\); expected at least one",
    ),
    "a number": (lambda: Rows(torch.tensor(1.0)), ValueError, r"tensors\[0\]: got shape \(\); expected at least one"),
    "other rows": (lambda: Rows(torch.zeros(3), torch.zeros(2)), ValueError, r"tensors\[1\]: got 2 rows; expected 3"),
    "no sets": (lambda: PaddedSets([]), ValueError, "sets: got none; expected at least one"),
    "empty sets": (lambda: PaddedSets([torch.zeros(0)] * 2), ValueError, "sets: all 2 are empty"),
    "sets of pairs": (
        lambda: PaddedSets([torch.zeros(2, 2)]),
        ValueError,
        r"sets\[0\]: got a tensor of shape \(2, 2\)",
    ),
    "lists": (lambda: PaddedSets([[1, 2]]), TypeError, r"sets\[0\]: got list; expected items"),
    "mixed sets": (lambda: PaddedSets([torch.ones(1), torch.tensor([1])]), TypeError, r"sets\[1\]: got torch.int64"),
    "small size": (lambda: PaddedSets([torch.ones(3)], size=2), ValueError, "size: got 2; expected at least 3"),
    "no offsets": (lambda: PaddedSets(torch.ones(3)), ValueError, "offsets: got None beside one tensor of items"),
    "lists and offsets": (
        lambda: PaddedSets([torch.ones(3)], torch.tensor([0, 3])),
        TypeError,
        "sets: got list beside offsets",
    ),
    "half offsets": (lambda: flat([0.0, 3.0]), ValueError, r"offsets: got \[0.0, 3.0\]; expected integers"),
    "one offset": (lambda: flat([0]), ValueError, r"offsets: got \[0\]; expected integers, at least 0 and"),
    "late offsets": (lambda: flat([1, 3]), ValueError, "offsets: got 1 to 3, smallest step 2; expected 0 to 3"),
    "short offsets": (lambda: flat([0, 2]), ValueError, "offsets: got 0 to 2, smallest step 2; expected 0 to 3"),
    "falling offsets": (lambda: flat([0, 2, 1, 3]), ValueError, "smallest step -1; expected 0 to 3, .* ascending"),
    "square text": (lambda: Windows(torch.ones(2, 2), 1), ValueError, r"text: got a tensor of shape \(2, 2\)"),
    "words": (lambda: Windows("abc", 1), TypeError, "text: got str; expected codes of characters"),
    "no length": (lambda: Windows(torch.ones(3), 0), ValueError, "length, stride: got 0 and 0; expected positive"),
    "no stride": (lambda: Windows(torch.ones(3), 2, 0), ValueError, "length, stride: got 2 and 0; expected positive"),
}


def flat(offsets: list[float]) -> PaddedSets:
    return PaddedSets(torch.ones(3), torch.tensor(offsets))


@pytest.mark.parametrize(("make", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_errors_teach(make, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        make()
