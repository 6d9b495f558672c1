"""Sets of items: the published counts, from published and compact files, and what is refused."""

import os
from math import comb, log
from pathlib import Path

import numpy as np
import pytest
import torch

from tessella.data import ITEMSETS, load_itemsets
from tessella.data.itemsets import parsing

COUNTS = {"retail": ((24_280, 3_035, 3_036), 765, 4.7187), "accidents": ((113_620, 14_202, 14_203), 139, 10.6545)}


@pytest.mark.parametrize("name", COUNTS)
def test_the_published_counts_come_out(name):
    folder = os.environ.get("TESSELLA_DATA")
    if not folder or not any((Path(folder) / form.files[0].name).is_file() for form in ITEMSETS[name].forms):
        pytest.skip(f"needs TESSELLA_DATA, a folder with the files of {name} (see docs/data.md)")
    sets, (sizes, items, floor) = load_itemsets(name), COUNTS[name]
    assert tuple(len(part) for part in sets.parts.values()) == sizes
    assert len(sets.items) == items
    assert (sets.shape.items, sets.shape.least, sets.shape.most) == (items, 4, 4)
    assert sets.entropy_floor == pytest.approx(floor, abs=1e-3)
    assert bool(sets.partial) == (name == "accidents")
    codes, mask = sets.train.batch(torch.arange(len(sets.train)))
    sets.shape.check(codes, mask)


def rows(number: int = 400) -> parsing.Transactions:
    """Every row has the items 0 to 11, a few have a rare one in place of the last."""
    items = np.tile(np.arange(12), (number, 1))
    items[::40, -1] = 99
    return parsing.Transactions(items.flatten(), np.full(number, 12))


def test_subsets_are_drawn_as_numpy_chooses_and_rare_items_take_their_sets_along():
    found = parsing.several_subsets(rows(), seed=5)
    generator = np.random.RandomState(5)
    drawn = [generator.choice(row, 4, replace=False) for row in rows().rows for _ in range(5)]  # over 8 items: 5 each
    kept = [one for one in drawn if 99 not in one]
    np.testing.assert_array_equal(found.items[found.codes], kept)
    assert len(found.items) == 12
    twelve = np.mean([99 not in row for row, _ in zip(rows().rows, range(400), strict=True)])
    assert log(comb(11, 4)) < found.entropy_floor < log(comb(12, 4))
    assert twelve < 1
    assert len(parsing.one_subset(rows(2000), seed=5).codes) <= 2000


def test_rows_of_exactly_four_come_first():
    four = parsing.Transactions(np.tile([3, 1, 2, 0], 300), np.full(300, 4))
    longer = parsing.Transactions(
        np.concatenate([rows().items, four.items]), np.concatenate([rows().lengths, four.lengths])
    )
    found = parsing.several_subsets(longer, seed=0)
    np.testing.assert_array_equal(found.items[found.codes[:300]], np.tile([3, 1, 2, 0], (300, 1)))


def test_files_that_are_not_as_published_are_refused(empty_data: Path):
    (empty_data / "retail.dat").write_bytes(b"1 2 3 4\n")
    with pytest.raises(ValueError, match="checksum"):
        load_itemsets("retail")
    (empty_data / "accidents.dat").write_bytes(b"1 2 3 4\n" * 300)
    with pytest.raises(ValueError, match="got 300 rows, 4 variables, at most 4 categories; expected 337,662"):
        load_itemsets("accidents")
    with pytest.raises(ValueError, match="not known"):
        load_itemsets("groceries")
