"""The metrics that compare methods: equal distributions are equal, others are not, copies are counted."""

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.peers.metrics import copies, dependence, two_sample, utility
from benchmarks.peers.tables import split
from benchmarks.peers.views import FREQUENT, TableView

ROWS = 1500


def table(seed: int, rows: int = ROWS) -> pa.Table:
    """A number, a day, a label and many names that hang together, each sometimes missing."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=rows).round(2)
    day = np.datetime64("2020-01-01") + (30 * number + 200 + rng.integers(0, 9, rows)).astype(int)
    label = np.where(number + 0.3 * rng.normal(size=rows) > 0, "high", "low")
    name = np.char.add("name ", (rng.exponential(200, rows)).astype(int).astype(str))
    columns = {"number": number, "day": day.astype("datetime64[ns]"), "label": label, "name": name}
    return pa.table({key: pa.array(values, mask=rng.random(rows) < 0.1) for key, values in columns.items()})


def shuffled(rows: pa.Table, seed: int = 0) -> pa.Table:
    """The same columns, each in an order of its own."""
    rng = np.random.default_rng(seed)
    return pa.table({name: rows[name].take(rng.permutation(len(rows))) for name in rows.column_names})


TRAIN, REAL, OTHER = table(0), table(1), table(2)
VIEW = TableView(TRAIN)


def test_rows_of_one_distribution_cannot_be_told_apart():
    found = two_sample(VIEW, REAL, OTHER)
    assert abs(found.value - 0.5) < max(4 * found.error, 0.04)
    assert dependence(VIEW, REAL, OTHER) < 0.02


def test_rows_whose_columns_were_shuffled_are():
    apart = shuffled(OTHER)
    assert two_sample(VIEW, REAL, apart).value > 0.8
    assert dependence(VIEW, REAL, apart) > 3 * dependence(VIEW, REAL, OTHER)


@pytest.mark.parametrize("column", TRAIN.column_names)
def test_missing_values_count_in_every_column(column: str):
    """Rows that never lack a value are told from rows that sometimes do."""
    place = REAL.column_names.index(column)
    often = pa.array(OTHER[column].to_pylist(), OTHER[column].type, mask=np.random.default_rng(0).random(ROWS) < 0.7)
    lacking = OTHER.set_column(place, column, pa.chunked_array([often]))
    assert two_sample(VIEW, REAL, lacking).value > 0.7


def test_a_date_that_moved_is_seen():
    later = pa.array(np.asarray(OTHER["day"].to_numpy()) + np.timedelta64(400, "D"))
    assert two_sample(VIEW, REAL, OTHER.set_column(1, "day", later)).value > 0.85


def test_names_that_do_not_exist_are_seen():
    """Among more names than trees tell apart, by how often they occur in training."""
    assert len(TRAIN["name"].unique()) > FREQUENT
    unknown = pa.array([value and f"x{value}" for value in OTHER["name"].to_pylist()])
    assert two_sample(VIEW, REAL, OTHER.set_column(3, "name", unknown)).value > 0.9


@pytest.mark.parametrize("target", ["label", "number"])
def test_rows_that_hang_together_are_of_use(target: str):
    good, bad = (utility(VIEW, target, rows, REAL) for rows in (OTHER, shuffled(OTHER)))
    assert good.value > 0.8
    assert bad.value < 0.6
    assert 0 < good.error < 0.1


def test_a_label_that_is_never_drawn_is_unknown():
    """It counts as a guess, 0.5, so that two labels have (1 + 0.5) / 2 at most; leaving it out would give 0.9."""
    only = OTHER.filter(pa.array([value != "high" for value in OTHER["label"].to_pylist()]))
    spoilt = pa.concat_tables([only, only.set_column(2, "label", pa.array(["neither"] * len(only)))])
    assert utility(VIEW, "label", spoilt, REAL).value <= 0.75


def test_copies_are_counted_exactly():
    mixed = pa.concat_tables([TRAIN[:30], REAL[:70]])
    unique = {tuple(map(str, row.values())) for row in TRAIN.to_pylist()}
    by_hand = [tuple(map(str, row.values())) in unique for row in mixed.to_pylist()]
    assert copies(TRAIN, mixed) == np.mean(by_hand) >= 0.3


def test_a_copy_is_one_in_other_types_too():
    """Peers give integers as real numbers, dates in other units and text as categories."""
    train = pa.table({"n": [1, 2, None], "d": pa.array([0, 1, 2], pa.timestamp("ns")), "t": ["a", "b", None]})
    drawn = pa.table(
        {
            "n": pa.array([1.0, None, 2.5]),
            "d": pa.array([0, 0, 0], pa.timestamp("us")),
            "t": pa.array(["a", None, "b"]).dictionary_encode(),
        }
    )
    assert copies(train, drawn) == pytest.approx(2 / 3)
    assert TableView(train).features(drawn).shape == (3, 3)


def test_parts_of_a_split_share_no_row():
    parts = split(pa.table({"row": range(1000)}), rows=500, scored=60, seed=3)
    rows = [part["row"].to_pylist() for part in (parts.train, parts.held_out, parts.real)]
    assert [len(part) for part in rows] == [500, 60, 60]
    assert len(set().union(*rows)) == 620
