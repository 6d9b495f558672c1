"""Grids and atoms are found, come back as they went in, and have the same measure for everything that scores."""

import numpy as np
import pandas as pd
import pytest
import torch
from tests.estimators.frames_for_tests import cell_flow

from tessella.data import Column, Encoding
from tessella.data.tables.columns import learn
from tessella.data.tables.grids import grid_step
from tessella.estimators.marginals import Marginals

RNG = np.random.default_rng(0)
CENTS = np.round(RNG.normal(5, 1, 500), 2)
FLOATS = RNG.normal(5, 1, 500)
HALF_ZEROS = np.where(RNG.random(500) < 0.5, 0.0, FLOATS)
FIVES = np.where(RNG.random(500) < 0.2, -5.0, HALF_ZEROS)


@pytest.mark.parametrize(
    ("values", "kind", "measure"),
    [
        (CENTS, "grid", "masses on multiples of 0.01"),
        (CENTS.astype(np.float32), "grid", "masses on multiples of 0.01"),
        (np.cumsum(np.full(500, 0.1)) % 7, "continuous", "a density"),  # no value comes twice
        (np.tile(np.cumsum(np.full(100, 0.1)), 5), "grid", "masses on multiples of 0.1"),
        (FLOATS, "continuous", "a density"),
        (HALF_ZEROS, "continuous", "a density, and a mass on 1 value"),
        (FIVES, "continuous", "a density, and a mass on 2 values"),
        (CENTS * 1e-9, "continuous", "a density, and a mass on"),  # finer than the finest grid
        (np.round(1e6 + CENTS / 100, 4), "grid", "masses on multiples of 0.0001"),
        (np.round(100 * CENTS), "count", "masses on integers"),
    ],
)
def test_what_a_column_is_made_of_is_found(values, kind, measure):
    column = learn("x", values.tolist(), None, None)
    assert (column.kind, column.measure[: len(measure)]) == (kind, measure)


@pytest.mark.parametrize("gone", [0, 50])
@pytest.mark.parametrize("values", [CENTS, HALF_ZEROS, FIVES, FLOATS], ids=["grid", "atom", "atoms", "density"])
def test_values_come_back_as_they_went_in(values, gone):
    given = [*values.tolist()[gone:], *[None] * gone]
    column = learn("x", given, None, None)
    encoding = Encoding((column,))
    codes, numbers = encoding.encode([given])
    assert encoding.decode(codes, numbers) == [given]
    assert Column.from_json(column.to_json()) == column
    states = len(column.atoms) + 1 + (gone > 0)
    assert encoding.counts == ((states,) if states > 1 else (1,))
    assert sum(column.state_frequencies) == len(given)
    if states > 1:
        assert torch.bincount(codes[:, 0]).tolist() == list(column.state_frequencies)


def test_columns_of_older_files_are_read():
    column = Column("n", "count", frequencies=(2, 8), low=0, high=40, whole=True)
    said = {key: value for key, value in column.to_json().items() if key not in ("step", "atoms")}
    assert Column.from_json(said) == column


def test_a_value_beside_the_grid_is_refused():
    column = learn("price", CENTS.tolist(), None, None)
    with pytest.raises(ValueError, match=r"column 'price', row 1: got 1.005; expected multiples of 0.01; declare"):
        column.encode([1.0, 1.005], "error")
    with pytest.raises(ValueError, match=r"column 'x': got .*; expected multiples of 1, 0.1, ... or 1e-06; declare"):
        learn("x", FLOATS.tolist(), "grid", None)
    assert learn("price", CENTS.tolist(), "continuous", None).step == 1.0


def test_no_two_values_share_a_place_on_the_grid():
    values = 1e5 + np.arange(1, 50) * 1e-5
    step = grid_step(values)
    assert step == 1e-5
    assert len(np.unique(np.round(values / step))) == len(values)


@pytest.fixture(scope="module")
def zeros() -> pd.DataFrame:
    """Half of x is zero, in all rows of a group."""
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], 1200)
    return pd.DataFrame({"group": group, "x": np.where(group == "a", 0.0, rng.exponential(1, 1200))})


def test_a_flow_gives_atoms_masses(zeros):
    """The best score of a row is -log 2, of its group; a density would have no such bound at the zeros."""
    flow = cell_flow(max_steps=300).fit(zeros)
    scores = flow.score_samples(zeros[zeros["x"] == 0][:100])
    assert scores.mean() == pytest.approx(np.log((zeros["x"] == 0).mean()), abs=0.15)
    sampled = flow.sample(2000, random_state=0)
    assert (sampled["x"] == 0).mean() == pytest.approx((zeros["x"] == 0).mean(), abs=0.06)
    given = flow.sample(50, {"x": 0.0}, random_state=0)
    assert (given["x"] == 0).all()
    assert (given["group"] == "a").mean() > 0.9
    marginals, encoding = Marginals(flow.model_, flow.encoding_), flow.encoding_
    drawn = encoding.join(*encoding.encode([zeros[name].tolist() for name in zeros]))[:1].repeat(4000, 1)
    drawn[:, encoding.tokens(1)] = marginals.draw(1, 4000)
    share = np.mean([value == 0 for value in encoding.decode(*encoding.split(drawn))[1]])
    atom = drawn[drawn[:, encoding.tokens(1)[0]] != 1]
    assert float(marginals.log_prob(1, atom)[0].exp()) == pytest.approx(share, abs=0.04)
