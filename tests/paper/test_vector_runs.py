"""Table 4, tiny: every method on a small table, one record of the same kind for each; the page that they make."""

import json
from dataclasses import replace
from math import log, pi
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from tessella import checks
from tessella.cli.reproduce.vectors import continuous
from tessella.data import Rows, VectorTable
from tessella.data.vectors.registry import VECTORS
from tessella.densities import DisjointMixtureConfig, FlatCouplingConfig, SplineConfig
from tessella.models import build_vectors
from tessella.models.tables import number_of_parameters
from tessella.paper.effort import Effort
from tessella.paper.pages.vectors import NEEDED, vectors_section
from tessella.paper.published import PUBLISHED_VECTORS
from tessella.paper.vectors import VectorTask, recipe_of, run_vectors

FLOW = {"model.cells": 4, "model.blocks": 2, "model.component_blocks": 2, "model.width": 8, "model.layers": 1}
FLOW |= {"model.embedding": 8, "model.bins": 4}
AUTOREGRESSIVE = {"model.transforms": 2, "model.width": 8, "model.layers": 1, "model.bins": 4}
TRAINING = {"training.batch_size": 128, "training.learning_rate": 0.01, "training.warmup_steps": 0}
SMALL = dict.fromkeys(("mixture", "one-cell", "spline", "coupling"), FLOW | TRAINING)
SMALL["autoregressive"] = AUTOREGRESSIVE | TRAINING
ENTROPY = 6 / 2 * log(2 * pi * 2.718281828459045 * 0.01) + log(2)


@pytest.fixture(autouse=True)
def prepared(tmp_path, monkeypatch) -> Path:
    """Two narrow clusters of mass 1/2 in the place of POWER, and no other file of it."""
    torch.set_default_dtype(torch.float32)
    monkeypatch.setenv("TESSELLA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TESSELLA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    generator = torch.Generator().manual_seed(0)
    sign = torch.randint(2, (3000, 1), generator=generator) * 2.0 - 1
    rows = sign + 0.1 * torch.randn(3000, 6, generator=generator)
    table = VectorTable(
        "power", *map(Rows, rows.split([2000, 500, 500])), None, "a test", "none", "drawn for a test", 0
    )
    table.save(tmp_path / "data" / "power.prepared.safetensors", rows=1500)
    return tmp_path


@pytest.fixture
def patches(prepared) -> None:
    """Eight by eight pixels of noise, brighter or darker at the edges, in the place of BSDS300."""
    generator, edge = torch.Generator().manual_seed(0), 3 * torch.linspace(-1, 1, 8).square()
    contrast = torch.randn(600, 1, 1, generator=generator)
    whole = torch.randn(600, 8, 8, generator=generator) + contrast * (edge + edge[:, None])
    rows = (whole - whole.mean((1, 2), keepdim=True)).flatten(1)[:, :-1] / 10
    parts = map(Rows, rows.split([400, 100, 100]))
    VectorTable("bsds300", *parts, None, "a test", "none", "drawn for a test", 0).save(
        prepared / "data" / "bsds300.prepared.safetensors"
    )


def task(method: str, **options) -> VectorTask:
    common = {"steps": 60, "accelerator": "cpu", "progress": False, "changes": SMALL[method]}
    return VectorTask("power", method, **(common | options))


@pytest.mark.parametrize("method", SMALL)
def test_every_method_learns_and_leaves_a_record(method, tmp_path):
    record = json.loads(json.dumps(run_vectors(task(method), tmp_path / "run")))
    assert set(record) >= NEEDED
    assert (record["data"], record["method"], record["steps"], record["test_rows"]) == ("power", method, 60, 500)
    assert record["partial"] == "partial: at most 1,500 rows of each part, of 2,000 + 500 + 500"
    assert record["rebuilt"] == "drawn for a test"
    assert record["train_rows"] == 1500
    assert ENTROPY - 4 * record["stderr"] < record["nll"] < record["curve"][0][1] - 0.1
    assert record["nll"] == pytest.approx(record["validation_nll"], abs=0.5)


def test_the_mixture_passes_the_flow_on_clusters(tmp_path):
    nll = {method: run_vectors(task(method), tmp_path / method)["nll"] for method in ("mixture", "coupling")}
    assert nll["mixture"] < nll["coupling"] - 0.3


def test_a_budgets_pace_is_measured_once(tmp_path, monkeypatch):
    monkeypatch.setattr("tessella.training.run.usable", lambda: 2)  # so that a run has threads to choose
    monkeypatch.setattr("tessella.training.run.measure_pace", None)  # and would look for their pace
    assert run_vectors(task("mixture", steps=0, minutes=0.02), tmp_path)["steps"] > 0


def test_the_same_command_continues_the_run_it_finds(tmp_path):
    """Also where the steps were planned from a time budget, and timing them again would give others."""
    minutes = {"steps": 0, "minutes": 0.02}
    first, again = (run_vectors(task("mixture", **minutes), tmp_path) for _ in range(2))
    assert (again["nll"], again["steps"], again["curve"]) == (first["nll"], first["steps"], first["curve"])
    assert first["training"]["time_budget"] == pytest.approx(1.2)


def of_patches(**options) -> VectorTask:
    return replace(task("spline", steps=30), data="bsds300", **options)


def test_patches_are_seen_under_the_symmetries_of_the_square(patches, tmp_path):
    record = json.loads(json.dumps(run_vectors(of_patches(), tmp_path / "run")))
    assert (record["symmetries"], record["train_rows"], record["test_rows"]) == ("square", 400, 100)
    about = json.loads((tmp_path / "run" / "config.json").read_text())["data"]
    assert about == {"train": [[8 * 400, 63]], "validation": [[100, 63]]}
    assert record["symmetrized"]["nll"] < record["nll"] < record["curve"][0][1]


def test_without_symmetries_patches_are_rows_like_others(patches, tmp_path):
    changes = SMALL["spline"] | {"symmetries": "none"}
    record = run_vectors(of_patches(changes=changes, variant="plain"), tmp_path / "run")
    assert (record["symmetries"], record["symmetrized"], record["variant"]) == ("none", None, "plain")
    about = json.loads((tmp_path / "run" / "config.json").read_text())["data"]
    assert about["train"] == [[400, 63]]


def test_rows_that_are_no_patches_have_no_symmetries(tmp_path):
    with pytest.raises(ValueError, match="symmetries: got 'square' for 'power', whose rows are no images"):
        run_vectors(task("spline", changes=SMALL["spline"] | {"symmetries": "square"}), tmp_path / "run")


def test_changes_need_a_name():
    with pytest.raises(ValueError, match="set, variant: got 1 changes and ''; expected both, or neither"):
        continuous("power", "mixture", change=("symmetries=none",))


@pytest.mark.parametrize("preset", ["best", "paper"])
@pytest.mark.parametrize("data", VECTORS)
def test_mixture_and_flows_without_cells_have_one_size(data, preset):
    dim = VECTORS[data].extent.variables
    mixture = recipe_of(VectorTask(data, "mixture", preset), dim)
    size = number_of_parameters(build_vectors(mixture.model, dim))
    for method in ("coupling",) if preset == "paper" else ("coupling", "spline", "one-cell"):
        other = recipe_of(VectorTask(data, method, preset), dim)
        if method != "one-cell":
            assert mixture.model.blocks + mixture.model.component_blocks == other.model.blocks
        assert (mixture.training, mixture.symmetries) == (other.training, other.symmetries)
        assert number_of_parameters(build_vectors(other.model, dim)) == pytest.approx(size, rel=0.05)


def test_the_paper_has_no_spline():
    with pytest.raises(ValueError, match="preset: got 'paper' for 'spline'; expected 'best'"):
        recipe_of(VectorTask("power", "spline", "paper"), 6)


@pytest.mark.parametrize(
    "config",
    [
        DisjointMixtureConfig(cells=4, blocks=1, component_blocks=1, width=8),
        DisjointMixtureConfig(cells=4, blocks=1, component_blocks=1, width=8, weighted=True, base="gaussian"),
        FlatCouplingConfig(blocks=2, width=8),
        FlatCouplingConfig(blocks=2, width=8, transform="spline", network="residual", linear=True),
        SplineConfig(transforms=1, width=8, layers=1),
    ],
    ids=["mixture", "laguerre", "coupling", "spline-coupling", "spline"],
)
def test_the_training_step_never_looks_at_a_value(config):
    """On tensors without values, loss and gradient still work: what a step captured as a CUDA graph needs."""
    model = build_vectors(config, 5)
    model.initialize(torch.randn(64, 5))
    with FakeTensorMode(allow_non_fake_inputs=True), checks.values(False):
        loss = model.loss(torch.randn(64, 5))
        loss.backward()
        with pytest.raises(DataDependentOutputException):
            loss.item()  # it would have been noticed


def test_the_cells_behind_a_flow_are_placed_by_what_the_flow_makes_of_the_rows():
    density = DisjointMixtureConfig(cells=4, blocks=1, component_blocks=1, width=8).build((2,))
    x = torch.tensor([[1000.0, -5.0], [1000.0, 5.0], [3000.0, -5.0], [3000.0, 5.0]]).repeat(50, 1)
    density.initialize(x + 0.01 * torch.randn(200, 2))
    anchors = density.bijection.inverse_and_ladj(density.base.tessellation.anchors)[0]
    assert torch.cdist(anchors, x[:4]).min(1).values.max() < 1


def test_command_leaves_a_record_that_the_page_shows(tmp_path, capsys, monkeypatch):
    config = DisjointMixtureConfig(cells=4, blocks=1, component_blocks=1, width=8)
    monkeypatch.setattr("tessella.paper.vectors.MIXTURE", config)
    options = {"out": tmp_path / "runs", "results": tmp_path / "results"}
    for seed in (0, 1):
        continuous("power", "mixture", effort=Effort(steps=2, accelerator="cpu", progress=False, seed=seed), **options)
    said = capsys.readouterr().out
    assert "partial: at most 1,500 rows" in said
    found = [json.loads(path.read_text()) for path in sorted((tmp_path / "results" / "continuous").iterdir())]
    page = vectors_section(tmp_path / "results", tmp_path)
    mean = (found[0]["nll"] + found[1]["nll"]) / 2
    spread = abs(found[0]["nll"] - found[1]["nll"]) / 2**0.5
    assert f"| disjoint mixture | -0.52 ± 0.01 | {mean:.3f} ± {spread:.3f} (2 seeds) |" in page
    assert "[seed 1](results/continuous/power-mixture-seed1.json)" in page
    assert "Rows: partial: at most 1,500 rows" in page
    assert "| coupling flow, affine | -0.44 ± 0.01 | - |" in page


def test_without_records_the_page_has_the_published_values_and_dashes(tmp_path):
    page = vectors_section(tmp_path, tmp_path)
    for data in VECTORS:
        assert set(PUBLISHED_VECTORS[data]) == {"Real NVP", "MAF", "FFJORD", "coupling", "mixture"}
        assert f"### {data.upper()}" in page
    assert "| FFJORD | -157.40 ± 0.19 | - |" in page
    assert page.count("| autoregressive spline flow (zuko) | - | - |") == 5


def test_incomplete_records_are_refused(tmp_path):
    (tmp_path / "continuous").mkdir()
    (tmp_path / "continuous" / "power.json").write_text(json.dumps(dict.fromkeys(NEEDED - {"stderr"}, "")))
    with pytest.raises(ValueError, match=r"power\.json: no stderr; expected a record of"):
        vectors_section(tmp_path, tmp_path)


def test_the_page_tells_averages_and_variants_apart(patches, tmp_path):
    options = {"out": tmp_path / "runs", "results": tmp_path / "results"}
    effort = Effort(steps=2, accelerator="cpu", progress=False)
    small = [f"{name}={value}" for name, value in SMALL["spline"].items()]
    continuous("bsds300", "spline", effort=effort, change=(*small, "symmetries=left-right"), variant="small", **options)
    (found,) = (json.loads(path.read_text()) for path in (tmp_path / "results" / "continuous").iterdir())
    page = vectors_section(tmp_path / "results", tmp_path)
    assert f"| coupling flow, splines (small) | - | {found['nll']:.3f} ±" in page
    averaged = found["symmetrized"]["nll"]
    assert f"| coupling flow, splines (small), averaged over symmetries | - | {averaged:.3f} ±" in page
    assert page.count("| coupling flow, splines | - | - |") == 5
