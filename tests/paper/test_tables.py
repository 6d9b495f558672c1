"""Table 1, tiny: every method on Nursery, one record of the same kind for each."""

from dataclasses import replace

import pytest
import torch

from tessella.configs import changed, parse_changes
from tessella.data import TABLES, Rows, TableShape, load_table
from tessella.paper.published import ENTROPY_FLOORS, PUBLISHED, below_entropy_floor
from tessella.paper.tables import speed
from tessella.paper.tables.recipes import BEST, DIFFERENCES, recipe_for
from tessella.paper.tables.run import TableTask, importance_curve, recipe_of, run_table
from tessella.paper.tables.speed import measure_sampling
from tessella.runs import DataConfig
from tessella.training import TrainingConfig, load_best
from tessella.training.pace import measure_pace

KEYS = {
    "data",
    "partial",
    "method",
    "density",
    "preset",
    "seed",
    "steps",
    "seconds",
    "elbo_nll",
    "iw_nll",
    "iw_samples",
}
KEYS |= {
    "initial_nll",
    "best_step",
    "stderr",
    "validation_nll",
    "entropy_floor",
    "command",
    "commit",
    "hardware",
    "parameters",
    "test_rows",
    "exact",
}
KEYS |= {"curve", "iw_curve", "model", "training", "matmul_precision", "simulated", "stopped", "test_rows_available"}
NETWORKS = {"model.density.width": 8, "model.density.layers": 1, "model.noise.blocks": 1, "model.noise.width": 8}
GROUPS = {"model.density.groups": 2, "model.density.components": 2}
TRAINING = {"training.validation_rows": 40, "training.batch_size": 32}
SMALL = {
    "voronoi": GROUPS | NETWORKS | TRAINING,
    "simplex": GROUPS | NETWORKS | TRAINING,
    "binary-argmax": GROUPS | NETWORKS | TRAINING,
    "discrete-flow": TRAINING | {"model.layers": 2, "model.width": 8},
    "blocks": TRAINING | {"model.layers": 1, "model.width": 8, "model.groups": 3},
    "transformer": TRAINING | {"model.layers": 1, "model.width": 8},
    "autoregressive": TRAINING | {"model.layers": 1, "model.width": 8},
    "backoff": TRAINING | {"model.network.layers": 1, "model.network.width": 8},
    "mixture": {"model.components": (2, 3)},
    "independent": {},
    "chow-liu": {},
}
DENSITIES = {"best": {"cells"}, "joined": {"cells"}, "blind": {"groups", "coupling"}, "affine": {"coupling"}}
DENSITIES |= {"small": {"cells"}, "paper": {"flat"}}
EXACT = {"discrete-flow", "transformer", "autoregressive", "backoff", "blocks", "mixture", "independent", "chow-liu"}
NURSERY = load_table("nursery").encoding.shape
COUNTED = {"mixture", "independent", "chow-liu"}


def task(method: str, **options) -> TableTask:
    common = {"steps": 4, "samples": 10, "test_rows": 60, "accelerator": "cpu", "progress": False}
    return TableTask(DataConfig("nursery"), method, **({"changes": SMALL[method]} | common | options))


@pytest.fixture(autouse=True)
def single_precision():
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("method", BEST)
def test_every_method_gives_a_valid_record(method, tmp_path):
    record = run_table(task(method), tmp_path)
    assert set(record) >= KEYS
    assert (record["data"], record["method"], record["test_rows"]) == ("nursery", method, 60)
    assert record["test_rows_available"] == 1296
    assert record["exact"] == (method in EXACT)
    if method in COUNTED:
        assert (record["initial_nll"], record["best_step"]) == (None, None)
    else:
        assert record["initial_nll"] == record["curve"][0][1] >= record["validation_nll"]
        assert (record["best_step"] == 0) == (record["initial_nll"] == record["validation_nll"])
    assert record["iw_nll"] >= record["entropy_floor"] - 3 * record["stderr"]
    if method in EXACT:
        assert (record["elbo_nll"], record["iw_samples"], record["iw_curve"]) == (record["iw_nll"], 0, [])
    else:
        assert record["elbo_nll"] > record["iw_nll"]
        bounds = [bound for _, bound in record["iw_curve"]]
        assert [count for count, _ in record["iw_curve"]] == [1, 3, 10, 30]
        assert bounds == sorted(bounds, reverse=True)
        assert bounds[0] == pytest.approx(record["elbo_nll"], abs=1.0)


def test_the_same_command_gives_the_same_numbers_and_another_seed_others(tmp_path):
    first, again = (run_table(task("voronoi"), tmp_path / "a") for _ in range(2))
    assert {key: first[key] for key in ("iw_nll", "steps", "curve")} == {
        key: again[key] for key in ("iw_nll", "steps", "curve")
    }
    other = run_table(task("voronoi", seed=1), tmp_path / "b")
    assert other["iw_nll"] != first["iw_nll"]


def test_a_budget_plans_steps_once(tmp_path):
    asked = task("transformer", steps=0, minutes=0.02)
    first, again = (run_table(asked, tmp_path) for _ in range(2))
    assert first["training"]["steps"] == again["training"]["steps"]
    assert first["training"]["time_budget"] == pytest.approx(1.2)


@pytest.mark.parametrize("method", ["transformer", "voronoi"])
def test_a_budgets_pace_is_measured_once(method, tmp_path, monkeypatch):
    monkeypatch.setattr("tessella.training.run.usable", lambda: 2)  # so that a run has threads to choose
    monkeypatch.setattr("tessella.training.run.measure_pace", None)  # and would look for their pace
    record = run_table(task(method, steps=0, minutes=0.02), tmp_path)
    assert record["training"]["time_budget"] == pytest.approx(1.2)


def test_pace_leaves_model_and_noise_alone():
    model = recipe_of(task("transformer")).model.build(TableShape((2, 3)))
    rows = Rows(torch.zeros(50, 2, dtype=torch.int64))
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    noise = torch.get_rng_state()
    pace = measure_pace(model, rows, rows, TrainingConfig(batch_size=16, accelerator="cpu", progress=False))
    assert pace.update > 0
    assert pace.validation > 0
    assert torch.equal(noise, torch.get_rng_state())
    assert all(torch.equal(weight, model.state_dict()[name]) for name, weight in weights.items())


def test_a_value_below_the_floor_is_an_error(tmp_path, monkeypatch):
    from tessella.baselines import Independent

    monkeypatch.setattr(Independent, "_log_prob", lambda self, codes: torch.full((len(codes),), -9.0))
    with pytest.raises(ArithmeticError, match="nursery-independent-seed0: the value cannot be true"):
        run_table(task("independent"), tmp_path)


def test_importance_curve_of_weights_that_are_all_the_same_is_flat():
    model = recipe_of(task("voronoi")).model.build(TableShape((2, 3)))
    model.chunked_log_weights = lambda codes, samples: [torch.full((samples, len(codes)), -2.0)]
    assert importance_curve(model, (torch.zeros(5, 2),), 10) == [[1, 2.0], [3, 2.0], [10, 2.0]]


def test_the_start_follows_the_seed(tmp_path):
    """Two seeds find two mixtures, so that several seeds are several models even where learning adds nothing."""
    small = {"model.components": 4, "model.width": 8, "model.noise.width": 8, **TRAINING}
    runs = {
        name: run_table(task("voronoi", preset="mixture-start", seed=seed, steps=1, changes=small), tmp_path / name)
        for name, seed in (("a", 0), ("b", 1), ("again", 0))
    }
    started = {name: run["initial_nll"] for name, run in runs.items()}
    assert started["a"] == started["again"] != started["b"]
    weights = {}  # of the mixture itself, not of the noise around it
    for name in ("a", "b"):
        model = recipe_of(task("voronoi", preset="mixture-start", changes=small)).model.build(NURSERY)
        load_best(model, tmp_path / name)
        weights[name] = model.density.base.log_weight.sort().values
    assert (weights["a"] - weights["b"]).abs().max() > 1e-3


@pytest.mark.parametrize("preset", ["best", "joined", "blind", "affine", "mixture-start", "paper"])
def test_recipes_are_what_the_method_says(preset):
    for data in (*{data for _, data, _ in DIFFERENCES}, "nursery"):
        for method in ("voronoi",) if preset == "mixture-start" else ("voronoi", "simplex", "binary-argmax"):
            recipe = recipe_of(TableTask(DataConfig(data), method, preset, seed=3))
            assert recipe.training.seed == 3
            assert recipe.model.kind == ("mixture-start" if preset == "mixture-start" else "flow")
            if preset != "mixture-start":
                assert recipe.model.cells.kind == method
                assert recipe.model.density.kind in DENSITIES[preset]
    with pytest.raises(ValueError, match="got 'paper' for 'transformer'; expected 'best'"):
        recipe_of(TableTask(DataConfig("nursery"), "transformer", "paper"))
    with pytest.raises(ValueError, match="these follow from --steps or --minutes"):
        recipe_of(task("voronoi", changes={"training.validate_every": 7}))


def test_names_tell_records_apart():
    base = task("voronoi")
    others = [replace(base, seed=1), replace(base, preset="paper"), replace(base, data=DataConfig("pokerhands", True))]
    assert [one.name for one in [base, *others]] == [
        "nursery-voronoi-seed0",
        "nursery-voronoi-seed1",
        "nursery-voronoi-paper-seed0",
        "pokerhands-simulated-voronoi-seed0",
    ]


def test_changes_teach():
    recipe = BEST["voronoi"]
    new = changed(recipe, parse_changes(["model.cells.dim=3", "training.learning_rate=1", "model.noise.base=ball"]))
    assert (new.model.cells.dim, new.training.learning_rate, new.model.noise.base) == (3, 1.0, "ball")
    assert recipe.model.cells.dim != 3
    other = changed(recipe, parse_changes(["model.cells=laguerre", "model.density=flat"]))
    assert (other.model.cells.kind, other.model.cells.dim) == ("laguerre", recipe.model.cells.dim)
    assert (other.model.density.kind, other.model.density.width) == ("flat", 128)
    for wrong, message in {
        "model.cells.dims=2": "'dims' is no field here; expected one of",
        "model.cells.dim=two": "got 'two'; expected a value like",
        "model.cells=hexagons": "got 'hexagons'; expected one of voronoi",
        "model.cells.dim": "expected FIELD=VALUE",
    }.items():
        with pytest.raises(ValueError, match=message):
            changed(recipe, parse_changes([wrong]))


def test_published_values_below_the_floor_are_known():
    wrong = {
        (data, method)
        for data, row in PUBLISHED.items()
        for method, one in row.items()
        if below_entropy_floor(data, one)
    }
    assert wrong == {("nursery", "voronoi")}
    assert set(ENTROPY_FLOORS) == {data for data, entry in TABLES.items() if entry.entropy_floor is not None}


def test_sampling_speed_counts_passes_and_rows(monkeypatch):
    methods = ("voronoi", "simplex", "blocks", "transformer")
    for name in methods:
        before = DIFFERENCES.get(("best", "nursery", name), {})
        monkeypatch.setitem(DIFFERENCES, ("best", "nursery", name), {**before, **SMALL[name]})
    monkeypatch.setattr(speed, "METHODS", [(method, "best") for method in methods])
    record = measure_sampling("nursery", rows=(1, 20), accelerator="cpu", seed=0)
    assert [one["passes"] for one in record["measured"]] == [2, 2, 3, 8]
    assert all(value > 0 for one in record["measured"] for value in one["rows_per_second"])


def test_any_other_table_gets_the_recipe_that_is_the_same_on_all():
    assert recipe_for("titanic.csv") == BEST["voronoi"]
    assert recipe_for("quantized-rings").model.density.kind == "flat"
