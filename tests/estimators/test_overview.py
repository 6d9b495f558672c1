"""What a report is told about a fitted table is true of the table and of the model."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import torch
from tests.estimators.frames_for_tests import KINDS, cell_flow, mixed_columns, pandas_frame, small_flow

from tessella.estimators.overview import Overview, cell_maps, gather
from tessella.estimators.overview.fidelity import associations, marginals

ROWS, TEST = 240, 60


def with_parts(flow, rows: int, test: int):
    """As if the last rows had been held out."""
    flow.parts_ = {
        "train": np.arange(0, rows - 2 * TEST),
        "validation": np.arange(rows - 2 * TEST, rows - test),
        "test": np.arange(rows - test, rows),
    }
    return flow


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pandas_frame(mixed_columns(ROWS))


@pytest.fixture(scope="module")
def flow(frame):
    return with_parts(cell_flow().fit(frame), ROWS, TEST)


@pytest.fixture(scope="module")
def overview(flow, frame) -> Overview:
    return gather(flow, frame)


def test_it_survives_being_written(overview, tmp_path):
    assert overview.write(tmp_path / "new").name == "overview.json"
    assert Overview.read(tmp_path / "new") == overview
    assert dataclasses.asdict(overview) == json.loads(json.dumps(dataclasses.asdict(overview)))


def test_reading_says_what_is_wrong(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no overview\.json there; expected a folder"):
        Overview.read(tmp_path)
    (tmp_path / "overview.json").write_text('{"format": 99}')
    with pytest.raises(ValueError, match="got format 99"):
        Overview.read(tmp_path)


def test_columns_are_those_of_the_table(overview, frame):
    said = {column["name"]: column for column in overview.columns}
    kinds = {name: column["kind"] for name, column in said.items()}
    assert kinds == KINDS
    for name in frame:
        assert said[name]["missing"] == pytest.approx(frame[name].isna().mean())
    assert (said["note"]["categories"], said["country"]["categories"], said["pay"]["categories"]) == (2, 1, 0)
    assert (said["note"]["measure"], said["visits"]["measure"]) == ("", "masses on integers")
    assert (said["day"]["measure"], said["pay"]["measure"]) == ("masses on days", "a density")


def test_likelihoods_are_those_of_the_held_out_rows(overview, flow, frame):
    own, *baselines = overview.likelihoods
    scores = flow.score_samples(frame[-TEST:])
    assert (overview.held_out, overview.scored_rows) == ("test", TEST)
    assert overview.typical_score == pytest.approx(np.median(scores), abs=0.5)
    # Other noise in another order: the bound moves by little, and far less than from rows to rows.
    assert own["nll"] == pytest.approx(-scores.mean(), abs=0.2)
    assert own["error"] == pytest.approx(scores.std() / TEST**0.5, rel=0.15)
    assert (own["exact"], own["lead"]) == (False, 0.0)
    assert [baseline["name"] for baseline in baselines] == [
        "mixture of categoricals",
        "Chow-Liu tree",
        "causal transformer",
        "independent columns",
    ]
    for baseline in baselines:
        assert baseline["lead"] == pytest.approx(baseline["nll"] - own["nll"])
        assert baseline["gain"] == pytest.approx(baselines[-1]["nll"] - baseline["nll"])
        assert baseline["exact"]
        assert 0 < baseline["lead_error"] < 2 * (baseline["error"] + own["error"])


def test_without_a_test_part_it_says_validation(flow, frame, monkeypatch):
    monkeypatch.setattr(flow, "parts_", with_parts(cell_flow(), ROWS, 0).parts_)
    found = gather(flow, frame)
    assert (found.held_out, found.scored_rows) == ("validation", 2 * TEST)
    assert found.parts == {"train": ROWS - 2 * TEST, "validation": 2 * TEST, "test": 0}


def test_another_table_is_refused(flow, frame):
    with pytest.raises(ValueError, match="X: got 100 rows; expected the 240 rows of fit"):
        gather(flow, frame[:100])


def test_shares_are_shares(overview, frame):
    found = {marginal["name"]: marginal for marginal in overview.marginals}
    assert set(found) == set(frame) - {"country"}, "a column with a single value has nothing to show"
    for marginal in found.values():
        assert len(marginal["labels"]) == len(marginal["real"]) == len(marginal["sampled"])
        assert sum(marginal["real"]) == pytest.approx(1)
        assert sum(marginal["sampled"]) == pytest.approx(1)
        assert 0 <= marginal["difference"] <= 1
    assert dict(zip(found["sex"]["labels"], found["sex"]["real"], strict=True)) == pytest.approx(
        frame["sex"].value_counts(normalize=True)[["F", "M"]].to_dict()
    )
    assert found["pay"]["labels"][-1] == "missing"
    assert found["pay"]["real"][-1] == pytest.approx(frame["pay"].isna().mean())
    assert found["children"]["labels"] == [str(n) for n in sorted(frame["children"].unique())]
    low, high = found["day"]["ends"]
    assert "2020-01-01" <= low < high <= "2021-02-04"


def test_histograms_of_numbers_are_right(overview, frame):
    found = next(marginal for marginal in overview.marginals if marginal["name"] == "height")
    height = frame["height"].to_numpy()
    edges = np.linspace(*np.quantile(height, [0.005, 0.995]), len(found["real"]) + 1)
    expected, _ = np.histogram(np.clip(height, edges[0] + 1e-9, edges[-1] - 1e-9), edges)
    assert np.allclose(found["real"], expected / ROWS)


def test_rare_categories_are_put_together():
    names = [f"n{i}" for i in range(30) for _ in range(30 - i)]
    frame = pd.DataFrame({"name": names, "other": ["a", "b", "b"] * (len(names) // 3)})
    flow = cell_flow(max_steps=1).fit(frame)
    rows = flow.encoding_.join(*flow.encoding_.encode([names, frame["other"].tolist()]))
    marginal = marginals(flow.encoding_, rows, rows)[0]
    assert marginal["labels"] == [f"n{i}" for i in range(12)] + ["18 others"]
    assert marginal["real"][0] == pytest.approx(30 / len(names))
    assert marginal["real"][-1] == pytest.approx(sum(range(1, 19)) / len(names))


def test_associations_know_one_from_none():
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 4000)
    frame = pd.DataFrame({"a": sex, "b": np.where(sex == "F", "x", "y"), "c": rng.standard_normal(4000)})
    flow = cell_flow(max_steps=1).fit(frame)
    rows = flow.encoding_.join(*flow.encoding_.encode([frame[name].tolist() for name in frame]))
    shuffled = torch.stack([column[torch.randperm(len(rows))] for column in rows.T], 1)
    found = associations(flow.encoding_, rows, shuffled)
    real, sampled = torch.tensor(found["real"]), torch.tensor(found["sampled"])
    assert found["names"] == ["a", "b", "c"]
    assert torch.allclose(real, real.T)
    assert float(real[0, 1]) == pytest.approx(1)
    assert float(real[0, 2]) < 0.01
    assert float(sampled[0, 1]) < 0.01
    assert found["difference"] == pytest.approx(1 / 3, abs=0.02)
    assert found["difference_of_halves"] < 0.02


def test_cell_maps_are_the_learned_cells(overview, flow):
    assert {picture["name"] for picture in overview.cell_maps} == {"children", "note"}
    for picture in overview.cell_maps:
        embedding = flow.embedding(picture["name"])
        assert np.allclose(picture["anchors"], embedding.positions)
        assert len(picture["cells"]) == len(picture["categories"]) == len(embedding.categories)
        assert sum(picture["shares"]) == pytest.approx(1)
        anchors, corners = np.array(picture["anchors"]), [np.array(cell) for cell in picture["cells"]]
        for k, cell in enumerate(corners):
            middle = cell.mean(0)
            assert np.square(anchors - middle).sum(1).argmin() == k
    assert len(overview.cell_maps[0]["points"]) == cell_maps.POINTS


def test_cells_of_more_dimensions_are_projected(frame):
    flow = with_parts(cell_flow(dim=3, max_steps=2).fit(frame), ROWS, TEST)
    for picture in gather(flow, frame).cell_maps:
        assert (picture["dim"], picture["cells"], picture["points"]) == (3, [], [])
        assert np.array(picture["anchors"]).shape == (len(picture["categories"]), 2)


def test_the_oddest_rows_are_those_that_surprise(overview, flow, frame):
    scores = [row["score"] for row in overview.odd_rows]
    assert len(scores) == 5
    assert np.mean(scores) < overview.typical_score
    oddest = set(flow.anomalies(frame[-TEST:], top=10)["row"] + ROWS - TEST)
    assert len(oddest & {row["row"] for row in overview.odd_rows}) >= 4, "the noise may swap a row at the border"
    for row in overview.odd_rows:
        assert row["values"][0] == frame["sex"][row["row"]]
        assert row["values"][4] == str(frame["visits"][row["row"]])
        contributions = [reason["contribution"] for reason in row["reasons"]]
        assert contributions == sorted(contributions, reverse=True)
        for reason in row["reasons"]:
            assert reason["value"] == row["values"][list(frame).index(reason["column"])]


def test_sampled_rows_are_like_those_of_the_table(overview, frame):
    assert [len(row) for row in overview.sampled] == [9] * 5
    assert {row[0] for row in overview.sampled} <= {"F", "M"}
    assert {row[8] for row in overview.sampled} == {"Chad"}
    assert overview.curve[-1]["step"] == overview.steps > 0
    assert overview.seconds > 0


@pytest.mark.parametrize(
    "columns",
    [
        {"only": ["a", "b"] * 60},
        {"number": np.random.default_rng(0).standard_normal(120).tolist()},
        {"same": ["a"] * 120},
        {"sparse": [None] * 100 + [float(i) / 3 for i in range(20)]},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_tables_of_one_column(columns):
    frame = pd.DataFrame(columns)
    flow = small_flow(max_steps=2).fit(frame)
    flow.parts_ = {"train": np.arange(80), "validation": np.arange(80, 100), "test": np.arange(100, 120)}
    found = gather(flow, frame)
    assert all(np.isfinite(each["nll"]) for each in found.likelihoods)
    assert found.association["difference"] == 0
