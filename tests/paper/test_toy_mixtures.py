"""Figure 6: two models of one size, trained alike; records and pictures that say what was measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tessella.cli.reproduce.toys import mixture_2d
from tessella.data import TOYS
from tessella.densities import DimensionwiseMixtureConfig, DisjointMixtureConfig, FlatCouplingConfig
from tessella.densities.configs import Bounded
from tessella.models import build_vectors
from tessella.models.tables import number_of_parameters
from tessella.nets import MLP
from tessella.paper.figures.cells import grid
from tessella.paper.figures.toys import _colours, _leads, draw_moments
from tessella.paper.moments import moments
from tessella.paper.toys import (
    FIGURE_6,
    MIXTURE,
    MODELS,
    RATES,
    TRAINING,
    Chosen,
    FittedDensity,
    compare,
    dimensionwise,
    fit_density,
    toy_rows,
    without_cells,
)
from tessella.training import FitResult

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mixtures.md").read_text("utf-8")
SMALL = DisjointMixtureConfig(cells=8, blocks=1, component_blocks=1, width=8, layers=1, embedding=4)
BRIEF = replace(TRAINING, steps=60, batch_size=256, warmup_steps=0, validate_every=30, progress=False)


@pytest.fixture(autouse=True)
def single_precision():
    torch.set_default_dtype(torch.float32)


SPLINES = replace(SMALL, transform="spline", bins=4, network="residual", linear=True)


@pytest.mark.parametrize(
    "config",
    [MIXTURE, SMALL, replace(SMALL, weighted=True), SPLINES],
    ids=["preset", "small", "laguerre", "splines"],
)
@pytest.mark.parametrize("dim", [2, 7])
def test_all_models_have_the_same_size(config, dim):
    mixture = number_of_parameters(build_vectors(config, dim))
    for baseline in (without_cells(config, dim), dimensionwise(config, dim)):
        size = number_of_parameters(build_vectors(baseline, dim))
        assert size == pytest.approx(mixture, rel=0.05 if config is MIXTURE else 0.15)


def test_baselines_have_blocks_of_the_same_kind():
    for baseline in (without_cells(SPLINES, 2), dimensionwise(SPLINES, 2)):
        assert (baseline.transform, baseline.bins, baseline.network, baseline.linear) == ("spline", 4, "residual", True)


FLAT = FlatCouplingConfig(blocks=2, width=8, layers=1)
CUT = DimensionwiseMixtureConfig(cells=4, blocks=1, component_blocks=1, width=8, layers=1)
FEW = replace(SMALL, cells=4)


@pytest.mark.parametrize(
    ("config", "dim"),
    [(FLAT, 2), (FLAT, 3), *((config, dim) for config in (FEW, CUT) for dim in (1, 2, 3))],
    ids=lambda value: getattr(value, "kind", value),
)
def test_built_densities_train(config, dim):
    """A few steps of gradient descent raise the likelihood of two far clusters; draws are finite."""
    model = build_vectors(config, dim)
    x = torch.cat([torch.randn(300, dim), torch.randn(100, dim) * 3 + 8])
    model.initialize(x)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    first = model.loss(x).item()
    for _ in range(30):
        optimizer.zero_grad()
        model.loss(x).backward()
        optimizer.step()
    assert model.loss(x).item() < first
    assert model.density.sample((50,)).isfinite().all()


def test_cells_find_eight_clusters(tmp_path):
    """At once, and after sixty steps still better than the flow without cells; training continues where it stood."""
    compared = compare("eight_gaussians", SMALL, BRIEF, tmp_path)
    assert compared.mixture.best.nll < compared.coupling.best.nll - 0.3
    record = json.loads(json.dumps(compared.record()))
    assert record["mixture"]["nll"] == compared.mixture.best.nll
    assert record["coupling"]["model"]["kind"] == "flat"
    assert (record["steps"], record["training"]["steps"]) == (60, 60)
    again = compare("eight_gaussians", SMALL, BRIEF, tmp_path)
    assert again.mixture.best.nll == compared.mixture.best.nll


def test_the_rate_is_chosen_on_validation_rows_alone():
    """Also where the test rows would have preferred the other one."""

    def run(rate, validation, nll):
        result = FitResult(1, validation, validation + 1, steps=1, seconds=1.0, stopped="steps")
        return FittedDensity(SMALL, SMALL.build((2,)), replace(BRIEF, learning_rate=rate), result, nll, 0.1)

    chosen = Chosen((run(0.1, 2.0, 5.0), run(0.2, 3.0, 4.0)))
    summary = chosen.summary()
    assert (summary["nll"], summary["learning_rate"], summary["seconds"]) == (5.0, 0.1, 2.0)
    assert summary["tried"] == [[0.1, 2.0], [0.2, 3.0]]


def test_the_nll_is_that_of_the_test_rows(tmp_path):
    fitted = fit_density(SMALL, toy_rows("two_moons"), replace(BRIEF, steps=2), tmp_path)
    with torch.no_grad():
        nll = -fitted.density.log_prob(toy_rows("two_moons")["test"].tensors[0]).double()
    assert fitted.nll == pytest.approx(float(nll.mean()), abs=1e-5)
    assert fitted.stderr == pytest.approx(float(nll.std() / len(nll) ** 0.5), rel=1e-4)


def test_command_leaves_record_and_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tessella.paper.toys.MIXTURE", SMALL)
    monkeypatch.setattr("tessella.paper.toys.TRAINING", BRIEF)
    mixture_2d("pinwheel", tmp_path / "out", tmp_path / "results", steps=2, seed=3)
    record = json.loads((tmp_path / "results" / "mixture-2d-pinwheel.json").read_text())
    assert {"data", "method", "steps", "seconds", "commit", "command"} <= set(record)
    assert (record["seed"], record["steps"]) == (3, 2)
    said = capsys.readouterr().out
    for model in ("mixture", "coupling", "dimensionwise"):
        assert f"{model}: test NLL {record[model]['nll']:.3f}" in said
    picture = tmp_path / "out" / "mixture-pinwheel.png"
    assert picture.stat().st_size > 10_000
    picture.unlink()
    (tmp_path / "results" / "mixture-2d-pinwheel.json").unlink()
    mixture_2d("pinwheel", tmp_path / "out", tmp_path / "results", steps=2, seed=3)
    assert picture.exists()  # drawn again from the runs
    assert not (tmp_path / "results" / "mixture-2d-pinwheel.json").exists()  # nothing was measured


def test_without_matplotlib_there_are_records_and_a_reason(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tessella.paper.toys.MIXTURE", SMALL)
    monkeypatch.setattr("tessella.paper.toys.TRAINING", BRIEF)
    monkeypatch.setattr("tessella.paper.figures.style.find_spec", lambda name: None)
    mixture_2d("pinwheel", tmp_path, steps=1)
    assert "no pictures: matplotlib is not installed here" in capsys.readouterr().out
    assert (tmp_path / "mixture-2d-pinwheel.json").exists()
    assert not list(tmp_path.glob("*.png"))


def test_moments_are_of_one_run_and_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr("tessella.paper.moments.MOMENTS", (0, 2, 4))
    first, again = moments(SMALL, tmp_path, seed=1), moments(SMALL, tmp_path, seed=2)
    anchors = [density.base.tessellation.anchors for density in first.values()]
    assert not torch.equal(anchors[0], anchors[2])
    assert all(torch.equal(anchors[i], again[step].base.tessellation.anchors) for i, step in enumerate(first))
    assert draw_moments(tmp_path / "moments.png", first).stat().st_size > 10_000


def test_neighbours_have_different_colours():
    """Also where a cell is nowhere to be seen."""
    density = replace(SMALL, blocks=0).build((2,))
    density.base.tessellation.move_anchors(torch.tensor([[float(i), 0.0] for i in range(7)] + [[99.0, 0.0]]))
    colours = _colours(density, grid((-1.0, 7.0, -1.0, 1.0), 50))
    assert colours.shape == (8, 3)
    assert all(not torch.equal(colours[i], colours[i + 1]) for i in range(6))


def test_borders_are_where_the_cell_changes():
    tessellation = replace(SMALL, weighted=True).build((2,)).base.tessellation
    x = 3 * torch.randn(500, 2)
    lead = _leads(tessellation, x)
    assert torch.equal(lead.argmax(-1), tessellation.nearest(x))
    assert ((lead > 0).sum(-1) == 1).all()


def test_far_points_do_not_frighten_the_network():
    net = Bounded(MLP(1, 1, 8))
    torch.nn.init.normal_(net.net.head.weight)
    x = torch.tensor([[1e3], [1e6]], requires_grad=True)
    (slope,) = torch.autograd.grad(net(x).sum(), x)
    assert (slope.abs() < 1e-5).all()


def test_unknown_toy_is_named(tmp_path):
    assert set(FIGURE_6) <= set(TOYS)
    with pytest.raises(ValueError, match="data: got 'moons'; expected one of checkerboard"):
        compare("moons", SMALL, BRIEF, tmp_path)


@pytest.mark.parametrize("data", FIGURE_6)
def test_the_table_has_the_numbers_of_the_record(data):
    """Its best value in bold, and both learning rates tried."""
    record = json.loads((ROOT / "results" / f"mixture-2d-{data}.json").read_text())
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {data.replace('_', ' ')} | ")]
    values = [f"{record[model]['nll']:.3f} ± {record[model]['stderr']:.3f}" for model in MODELS]
    assert line.replace("**", "").split(" | ")[1:5] == [*values, f"{record['steps']:,}"]
    assert f"**{min(values)}**" in line
    assert {rate for model in MODELS for rate, _ in record[model]["tried"]} == set(RATES)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "results").glob("mixture-estimator-*.json")), ids=lambda path: path.stem
)
def test_the_page_has_the_numbers_of_the_estimators(path):
    """And in how many of the runs the flow is better."""
    record = json.loads(path.read_text())
    values = [f"{record['methods'][name]['nll']:.3f}" for name in ("GaussianMixture", "MixtureFlow")]
    gaps = record["MixtureFlow_is_better_by"]
    better = f"{sum(gaps) / len(gaps):.3f} | {sum(gap > 0 for gap in gaps)} of {len(gaps)}"
    size = f"{record['rows']['train']:,} x {record['rows']['columns']}"
    assert f"| {record['data']} | {size} | {' | '.join(values)} | {better} | [record]" in PAGE
