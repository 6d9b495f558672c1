"""What version 0.1.0 saved loads, and scores what it scored then; what no version can read is refused with advice."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tessella import MixtureFlow, TabularFlow

FOLDER = Path(__file__).parents[1] / "legacy" / "0.1.0"
SCORES = json.loads((FOLDER / "scores.json").read_text())
KINDS = {"coupling": "coupling", "categories": "coupling", "blocks": "blocks", "mixture": "mixture"}  # folder: density_


def rows(kind: str) -> pd.DataFrame:
    frame = pd.read_csv(FOLDER / "rows.csv")
    return frame[["size", "colour"]] if kind in ("mixture", "categories") else frame


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_0_1_0_has_the_scores_it_had(kind):
    """Likelihoods to the last digits; the bound, whose noise comes in the same order, to those of single precision."""
    flow = TabularFlow.load(FOLDER / kind, device="cpu")
    digits = 1e-12 if flow.exact_ else 1e-5
    np.testing.assert_allclose(flow.score_samples(rows(kind)), SCORES[kind], rtol=digits)
    assert flow.density_ == KINDS[kind]
    assert flow.components_ == (8 if kind == "blocks" else 3)
    assert flow.components == (None if kind == "blocks" else 2)


def test_vectors_of_0_1_0_have_the_densities_they_had():
    flow = MixtureFlow.load(FOLDER / "vectors", device="cpu")
    np.testing.assert_allclose(flow.score_samples(SCORES["vectors"]["rows"]), SCORES["vectors"]["scores"], rtol=1e-12)


def test_vectors_saved_without_their_config_have_the_densities_they_had(tmp_path):
    """Format 3 did not say the config of a mixture at first: those are of root cells, as in 0.1.0."""
    shutil.copytree(FOLDER / "vectors", tmp_path, dirs_exist_ok=True)
    description = json.loads((tmp_path / "estimator.json").read_text())
    (tmp_path / "estimator.json").write_text(json.dumps({**description, "format": 3}))
    flow = MixtureFlow.load(tmp_path, device="cpu")
    np.testing.assert_allclose(flow.score_samples(SCORES["vectors"]["rows"]), SCORES["vectors"]["scores"], rtol=1e-12)
    assert flow.config_.squashing == "root"
    flow.save(tmp_path)
    again = MixtureFlow.load(tmp_path, device="cpu")
    assert again.config_ == flow.config_
    assert np.array_equal(again.sample(20), flow.sample(20))


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_loaded_is_saved_in_the_new_format(kind, tmp_path):
    flow = TabularFlow.load(FOLDER / kind, device="cpu")
    flow.save(tmp_path)
    assert json.loads((tmp_path / "estimator.json").read_text())["format"] == 3
    again = TabularFlow.load(tmp_path, device="cpu")
    assert np.array_equal(again.score_samples(rows(kind)), flow.score_samples(rows(kind)))
    assert again.get_params() == flow.get_params()
    assert again.sample(20).equals(flow.sample(20))


@pytest.mark.parametrize(
    ("said", "advice"),
    [(1, "fit the model again with this version"), (99, "load it with that version or a later one"), ("x", "fit")],
)
def test_formats_that_nobody_knows_are_refused(said, advice, tmp_path):
    description = json.loads((FOLDER / "mixture" / "estimator.json").read_text())
    (tmp_path / "estimator.json").write_text(json.dumps({**description, "format": said, "tessella": "9.9"}))
    with pytest.raises(
        ValueError, match=f"got format {said!r}, which tessella 9.9 wrote; .* formats 2 and 3: {advice}"
    ):
        TabularFlow.load(tmp_path)
