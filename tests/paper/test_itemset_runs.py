"""Table 2, tiny: every kind of method leaves a record of the same kind; the page that they make."""

import json
from pathlib import Path

import pytest
import torch

from tessella.cli.reproduce.itemsets import itemsets
from tessella.data import ItemSets, PaddedSets
from tessella.paper.effort import Effort
from tessella.paper.itemsets.recipes import RECIPES
from tessella.paper.itemsets.run import SetTask, recipe_of
from tessella.paper.pages.itemsets import NEEDED, itemsets_section

COMMON = ["training.batch_size=64", "training.warmup_steps=0", "training.compile=off"]
FLOW = [*COMMON, "model.noise_width=8", "model.density.width=8", "model.density.layers=1", "model.cells.dim=2"]
MIXTURE = ["model.density.base.components=2", "model.density.base.rank=2"]
CHANGES = {
    "independent": (),
    "kdpp": (*COMMON, "model.rank=6"),
    "mixture": (*COMMON, "model.components=3", "model.rank=2"),
    "transformer": (*COMMON, "model.width=8", "model.layers=1"),
    "coupling": (*FLOW, *MIXTURE, "model.density.blocks=2"),
    "voronoi": (*FLOW, *MIXTURE, "model.density.flows=1", "model.density.tolerance=0.001"),
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Sets of 2 of 6 items, in pairs: who has an even item has the next."""
    torch.set_default_dtype(torch.float32)
    first = torch.randint(3, (300,), generator=torch.Generator().manual_seed(0)) * 2
    codes = torch.stack([first + 1, first], 1)
    parts = [PaddedSets(part.flatten(), 2 * torch.arange(len(part) + 1)) for part in codes.split([200, 50, 50])]
    sets = ItemSets("retail", tuple(range(6)), *parts, 1.0986, None, "a test", "none")
    monkeypatch.setattr("tessella.paper.itemsets.run.load_itemsets", lambda name: sets)


@pytest.mark.parametrize("method", CHANGES)
def test_every_method_leaves_a_record_that_the_page_shows(method, tmp_path, capsys):
    if method == "voronoi":
        pytest.importorskip("torchdiffeq")
    effort = Effort(steps=4 if method == "voronoi" else 30, accelerator="cpu", progress=False, threads=1)
    variant = "tiny" if CHANGES[method] else ""
    where = {"out": tmp_path / "runs", "results": tmp_path / "results"}
    itemsets("retail", method, effort=effort, samples=4, change=CHANGES[method], variant=variant, **where)
    (path,) = (tmp_path / "results" / "sets").glob("*.json")
    record = json.loads(path.read_text())
    assert set(record) >= NEEDED
    assert record["iw_nll"] > record["entropy_floor"] - 0.1
    assert (record["hutchinson"] is not None) == (method == "voronoi")
    page = itemsets_section(tmp_path / "results", tmp_path / "docs")
    assert f"{record['iw_nll']:.3f}" in page
    assert f"{record['iw_nll']:.4f}" in capsys.readouterr().out


def test_every_recipe_builds_and_says_what_it_is():
    for preset, recipes in RECIPES.items():
        for method in recipes:
            assert recipe_of(SetTask("retail", method, preset)).model is not None
    with pytest.raises(ValueError, match="preset: got 'paper' for 'kdpp'"):
        recipe_of(SetTask("retail", "kdpp", "paper"))


def test_a_record_below_its_floor_is_refused(tmp_path: Path):
    (tmp_path / "sets").mkdir()
    record = dict.fromkeys(NEEDED) | {"entropy_floor": 10.65, "iw_nll": 7.81, "stderr": 0.1}
    (tmp_path / "sets" / "one.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="below the entropy floor"):
        itemsets_section(tmp_path, tmp_path)
