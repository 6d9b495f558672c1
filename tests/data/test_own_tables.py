"""Tables of one's own, and quantized toys as tables."""

from collections import Counter
from math import log

import pytest
import torch

from tessella.data import QUANTIZED, load_table, quantized_toy, table_of
from tessella.data.tables.columns import learn

ROWS = 57
VALUES = [["red", "blue", None] * 19, [float(k) / 7 for k in range(ROWS)], list(range(ROWS))]
COLUMNS = [learn(name, values, None, None) for name, values in zip(("colour", "x", "n"), VALUES, strict=True)]


def test_the_parts_of_a_table_are_its_rows() -> None:
    table = table_of("mine", COLUMNS, VALUES, seed=3)
    assert [len(part) for part in table.parts.values()] == [47, 5, 5]
    decoded = [row for part in table.parts.values() for row in zip(*table.encoding.decode(*part.tensors), strict=True)]
    assert Counter(decoded) == Counter(zip(*VALUES, strict=True))
    assert decoded != list(zip(*VALUES, strict=True))
    assert (table.name, table.entropy_floor, table.partial) == ("mine", None, None)


def test_the_seed_decides_the_split() -> None:
    first, again, other = (table_of("mine", COLUMNS, VALUES, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first.test.tensors, again.test.tensors, strict=True))
    assert not torch.equal(first.test.tensors[1], other.test.tensors[1])


@pytest.mark.parametrize("shares", [(0.0, 0.1), (0.01, 0.1), (0.6, 0.5), (0.1, 1.0), (-0.1, 0.2)])
def test_no_part_may_be_empty(shares: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"validation, test: got shares .* of 57 rows.*at least 1 row in each part"):
        table_of("mine", COLUMNS, VALUES, 0, *shares)


def test_a_quantized_toy_is_a_table() -> None:
    table, toy = load_table("quantized-pinwheel"), quantized_toy("pinwheel")
    assert [part.shapes for part in table.parts.values()] == [[[rows, 2]] for rows in (200_000, 10_000, 10_000)]
    assert table.encoding.counts == (91, 91)
    assert table.entropy_floor == toy.entropy() < 2 * log(91)
    (codes,) = table.train.tensors
    mean_nll = -toy.probabilities[codes[:, 0], codes[:, 1]].log().mean()
    assert float(mean_nll) == pytest.approx(table.entropy_floor, abs=0.01)
    assert table.encoding.decode(codes[:1]) == [[str(int(code))] for code in codes[0]]
    assert "quantized-pinwheel" in QUANTIZED


def test_its_rows_come_from_the_seed() -> None:
    """Those of seed 0 are the ones that results were made with."""
    first, other = load_table("quantized-rings"), load_table("quantized-rings", seed=1)
    expected = quantized_toy("rings").sample(200_000, torch.Generator().manual_seed(1))
    assert torch.equal(first.train.tensors[0], expected)
    assert not torch.equal(other.train.tensors[0], expected)
