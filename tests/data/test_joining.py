"""Joined columns: the same rows in fewer variables, each spelling one category."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tessella.data import TABLES, load_table
from tessella.data.tables.joining import Joint, joined, one_hot, pairs, stacks
from tessella.data.tables.parsing import Coded, words

SPELLINGS = {"one-hot": one_hot(4), "pairs": pairs(3, 5), "stacks": stacks(3, pieces=(1, 2))}


@given(st.sampled_from(sorted(SPELLINGS)), st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.integers(0, 2))
def test_rows_come_back_from_their_categories(kind, picks, first):
    """spellings[code] is what the columns were, wherever they stand."""
    spellings = SPELLINGS[kind]
    rows = np.array([spellings[pick % len(spellings)] for pick in picks])
    table = np.concatenate([np.ones((len(rows), first), int), rows, np.zeros((len(rows), 1), int)], axis=1)
    codes = Joint("one", first, spellings).codes(table)
    assert np.array_equal(np.array(spellings)[codes], rows)
    assert len(set(spellings)) == len(spellings)


def test_a_spelling_that_cannot_be_is_an_error_that_names_its_row():
    bits = Coded(tuple(words(name, "01") for name in "ab"), np.array([[0, 1], [1, 1]]))
    with pytest.raises(ValueError, match=r"row 1: got codes \[1, 1\] for 'ab'; expected one of its 2 spellings"):
        joined(bits, [Joint("ab", 0, one_hot(2))])


def test_files_of_a_connect4_board():
    """The same rows, of which every joined value spells six squares."""
    plain, board = load_table("connect4"), load_table("connect4", joined=True)
    assert board.encoding.counts == (127,) * 7
    assert len(board.encoding.counts) == TABLES["connect4"].joined_variables
    own, other = (table.encoding.decode(*(part[:200] for part in table.test.tensors)) for table in (plain, board))
    spelled = [" ".join(squares) for row in zip(*own, strict=True) for squares in zip(*[iter(row)] * 6, strict=True)]
    assert spelled == [value for row in zip(*other, strict=True) for value in row]


def test_cards_are_uniform_over_the_deck():
    hands = load_table("pokerhands", simulated=True, joined=True, rows=2_000)
    (cards,) = hands.train.tensors
    assert hands.encoding.counts == (52,) * 5
    assert all(len(set(hand)) == 5 for hand in cards.tolist())
    assert torch.bincount(cards.flatten(), minlength=52).min() > 100


def test_only_tables_whose_columns_belong_together():
    with pytest.raises(ValueError, match=r"joined: no columns of 'nursery' are known .* connect4, forests, pokerhands"):
        load_table("nursery", joined=True)
