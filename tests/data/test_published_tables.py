"""The published tables: splits, entropy floors, and the grids and distributions they come from."""

from collections import Counter
from math import log, prod
from pathlib import Path

import pytest
import torch
from tests.data.published import everything, restored

from tessella.data import TABLES, Table, load_table
from tessella.data.locate import SHIPPED as SHIPPED_FOLDER
from tessella.data.reading import read_compact

SHIPPED = ["connect4", "mushroom", "nursery"]

# By the published rule: rows for training, validation and test, variables, most categories.
PUBLISHED = {
    "connect4": (54_045, 6_755, 6_757, 42, 3),
    "forests": (464_809, 58_101, 58_102, 54, 10),
    "mushroom": (6_499, 812, 813, 21, 12),
    "nursery": (10_368, 1_296, 1_296, 8, 5),
    "pokerhands": (820_008, 102_501, 102_501, 10, 13),
}


def sizes(table: Table) -> tuple[int, ...]:
    return (*map(len, table.parts.values()), len(table.encoding.counts), max(table.encoding.counts))


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_tables_have_the_published_sizes(name: str) -> None:
    table = load_table(name)
    assert sizes(table) == PUBLISHED[name]
    assert table.partial is None
    assert [(len(part.tensors), part.tensors[0].dtype) for part in table.parts.values()] == [(1, torch.int64)] * 3


@pytest.mark.parametrize("name", SHIPPED)
def test_all_rows_differ_so_the_entropy_floor_is_the_log_of_their_number(name: str) -> None:
    rows = everything(load_table(name))
    assert len(rows.unique(dim=0)) == len(rows)
    assert TABLES[name].entropy_floor == pytest.approx(log(len(rows)))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_category_occurs_and_every_variable_varies(name: str) -> None:
    table = load_table(name)
    for column, codes in zip(table.encoding.columns, everything(table).T, strict=True):
        assert bool((torch.bincount(codes) > 0).all())
        assert int(codes.max()) == len(column.categories) - 1
        assert len(column.categories) > 1


def test_nursery_is_the_complete_grid() -> None:
    table = load_table("nursery")
    assert prod(table.encoding.counts) == len(everything(table)) == 12_960


def test_connect4_positions_have_eight_pieces_that_obey_gravity() -> None:
    table = load_table("connect4")
    assert table.encoding.columns[0].categories == ("b", "o", "x")
    board = everything(table).reshape(-1, 7, 6)  # seven columns, lowest place first
    assert torch.equal((board == 2).sum((1, 2)), torch.full((len(board),), 4))
    assert torch.equal((board == 1).sum((1, 2)), torch.full((len(board),), 4))
    taken = board > 0
    assert not bool((taken[:, :, 1:] & ~taken[:, :, :-1]).any())


@pytest.mark.parametrize(("name", "seed"), [("connect4", 123), ("mushroom", 234), ("nursery", 345)])
def test_the_split_is_the_published_permutation_of_the_file(name: str, seed: int) -> None:
    _, arrays = read_compact(SHIPPED_FOLDER / f"{name}.npz.xz")
    varying = arrays["X"].max(axis=0) > 0
    assert (restored(load_table(name), seed).numpy() == arrays["X"][:, varying]).all()


def test_dealt_hands_are_five_different_cards_with_the_known_distribution() -> None:
    table = load_table("pokerhands", simulated=True, rows=100_000)
    hands = everything(table)
    cards = 13 * hands[:, 0::2] + hands[:, 1::2]
    assert bool((cards.sort(dim=1).values.diff(dim=1) > 0).all())
    # Each card is equally likely at each place: chi-square with 51 degrees of freedom, mean 51, deviation 10.
    for place in cards.T:
        counts = torch.bincount(place, minlength=52).double()
        expected = len(hands) / 52
        assert float(((counts - expected) ** 2 / expected).sum()) < 51 + 5 * 10
    # Two given places show a pair of ranks with probability 3 / 51.
    pairs = (hands[:, 1] == hands[:, 9]).double().mean()
    assert float(pairs) == pytest.approx(3 / 51, abs=5 * (3 / 51 / len(hands)) ** 0.5)


def test_dealt_hands_come_from_their_seed_and_say_that_they_are_simulated() -> None:
    one, again, other = (load_table("pokerhands", simulated=True, rows=1000, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(everything(one), everything(again))
    assert not torch.equal(everything(one), everything(other))
    drawn = "1,000 rows drawn with seed 1 from the distribution of the published table"
    assert one.partial == f"simulated: {drawn}, not its own rows"
    assert "simulated" in one.source
    assert one.entropy_floor == pytest.approx(19.558, abs=5e-4)


def test_dealt_hands_are_by_default_as_many_as_published() -> None:
    assert sizes(load_table("pokerhands", simulated=True)) == PUBLISHED["pokerhands"]


def test_unfit_requests_are_explained() -> None:
    with pytest.raises(ValueError, match=r"table 'chess': not known; expected one of connect4.*quantized-two_moons"):
        load_table("chess")
    with pytest.raises(ValueError, match="the distribution of table 'nursery' is not known"):
        load_table("nursery", simulated=True)
    with pytest.raises(ValueError, match="rows: got 5 without simulated=True; the published table has 12,960 rows"):
        load_table("nursery", rows=5)
    with pytest.raises(ValueError, match="rows: got 5; expected None for a quantized toy"):
        load_table("quantized-rings", rows=5)
    with pytest.raises(ValueError, match="rows: got 3; expected at least 20"):
        load_table("pokerhands", simulated=True, rows=3)


def test_forests_has_the_published_sizes_and_one_bit_of_each_kind(given_data: Path) -> None:
    table = load_table("forests")
    assert sizes(table) == PUBLISHED["forests"]
    rows = everything(table)
    assert bool((rows[:, 10:14].sum(1) == 1).all())
    assert bool((rows[:, 14:].sum(1) == 1).all())
    assert table.encoding.columns[0].categories[:2] == ("[1859, 2059)", "[2059, 2259)")
    assert torch.bincount(rows[:, 0]).tolist()[:3] == [2992, 10654, 22108]


@pytest.mark.parametrize(("name", "rows"), [("pokerhands", 125_010), ("uscensus90", 10_000)])
def test_a_part_says_that_it_is_one(given_data: Path, name: str, rows: int) -> None:
    table = load_table(name)
    total = len(everything(table))
    assert (table.partial is not None and table.partial.startswith("partial:")) == (total < TABLES[name].extent.rows)
    assert total in (rows, TABLES[name].extent.rows)
    first, second = (total * percent // 100 for percent in TABLES[name].percent)
    assert sizes(table)[:3] == (first, second, total - first - second)


def test_published_hands_are_five_different_cards(given_data: Path) -> None:
    hands = everything(load_table("pokerhands"))
    cards = 13 * hands[:, 0::2] + hands[:, 1::2]
    assert bool((cards.sort(dim=1).values.diff(dim=1) > 0).all())
    # Hands can come twice by chance, n^2 / 2 possible pairs over 311,875,200 hands: a few, not many.
    twice = sum(count - 1 for count in Counter(map(tuple, cards.tolist())).values())
    expected = len(hands) ** 2 / 2 / 311_875_200
    assert twice < expected + 6 * expected**0.5
