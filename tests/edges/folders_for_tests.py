"""Small estimators of every density, saved once, and ways to change their folders."""

import copy
import json
import random
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tests.estimators.frames_for_tests import FRAMES, mixed_columns, small_flow

from tessella import MixtureFlow, SetFlow, TabularFlow
from tessella.data import load_table
from tessella.densities import CouplingConfig
from tessella.estimators.overview import gather
from tessella.estimators.saving import DESCRIPTION, WEIGHTS
from tessella.models import FlowConfig
from tessella.runs import DataConfig, RunConfig, train_run
from tessella.training import TrainingConfig

ROWS = 60
LEGACY = Path(__file__).parents[1] / "legacy" / "0.1.0"
LIBRARY = {"autoregressive": "pandas", "blocks": "polars", "coupling": "pyarrow", "mixture": "polars"}
SECTIONS = ["config", "columns", "layout", "codes", "fitted", "params", "arrays"]  # each alike, whatever its length
SECTIONS += ["run", "training", "association", "telling", "likelihoods", "odd_rows", "curve", "marginals", "learning"]
BASKETS = {"baskets": "mixture", "baskets in order": "transformer", "baskets in cells": "coupling"}
DENSITIES = ["autoregressive", "blocks", "coupling", "mixture", "array", "vectors", "gaussians", *BASKETS]
Estimator = TabularFlow | MixtureFlow | SetFlow


def table_of(density: str) -> Any:
    columns = mixed_columns(ROWS)
    if density in BASKETS:
        return [["bread", "butter"], ["bread", "butter", "jam"], ["beer", "chips"], ["beer", 7]] * (ROWS // 4)
    if density in ("vectors", "gaussians"):
        return np.random.default_rng(0).normal(size=(ROWS, 2))
    if density == "array":
        return np.array([columns["sex"], columns["sex"][::-1]], dtype="U4").T
    return FRAMES[LIBRARY[density]](columns)


def save_estimator(density: str, folder: Path) -> None:
    """Fit for a moment, save."""
    if density == "vectors":  # a flow that has learned something
        MixtureFlow.load(LEGACY / "vectors", device="cpu").save(folder)
    elif density == "gaussians":
        options = {"max_steps": 1, "learning_rate": 1e-9, "progress": False, "device": "cpu", "random_state": 0}
        gaussians = MixtureFlow(components=2, **options).fit(table_of(density))
        assert gaussians.density_ == "gaussian mixture"
        gaussians.save(folder)
    elif density in BASKETS:
        options = {"max_components": 2, "max_steps": 1, "progress": False, "device": "cpu", "random_state": 0}
        SetFlow(model_kind=BASKETS[density], threads=1, **options).fit(table_of(density)).save(folder)
    else:
        kind = {"mixture": "auto", "array": "autoregressive"}.get(density, density)
        flow = small_flow(density=kind, max_steps=1).fit(table_of(density))
        assert density in ("array", flow.density_)
        flow.save(folder)


def save_overview(folder: Path) -> None:
    """What the report of a small model shows, beside the model."""
    table = table_of("autoregressive")
    flow = small_flow(density="autoregressive", max_steps=2, time_budget=0.2).fit(table)
    flow.save(folder)
    gather(flow, table).write(folder)


def save_run(folder: Path) -> None:
    """Of a flow, two steps."""
    training = TrainingConfig(steps=2, batch_size=8, validation_rows=20, progress=False, accelerator="cpu")
    model = FlowConfig(density=CouplingConfig(blocks=1, width=8, layers=1))
    train_run(RunConfig(DataConfig("nursery"), model, training), load_table("nursery"), folder)


def loaded(folder: Path, density: str) -> Estimator:
    if density in BASKETS:
        return SetFlow.load(folder, device="cpu")
    return (MixtureFlow if density in ("vectors", "gaussians") else TabularFlow).load(folder, device="cpu")


def use(flow: Estimator, density: str) -> None:
    """Draw, score, predict, explain, fill."""
    if isinstance(flow, SetFlow):
        baskets = [list(flow.items_[:1]), list(flow.items_[-2:])]
        flow.sample(3)
        flow.anomalies(baskets, top=1)
        flow.complete(baskets[0])
        flow.embedding()
        return
    rows = table_of(density)[:2]
    flow.sample(3)
    flow.score_samples(rows)
    if isinstance(flow, MixtureFlow):
        flow.predict(rows)
        return
    flow.anomalies(rows, top=1)
    if flow.density_ in ("autoregressive", "mixture"):
        flow.impute(rows)
        flow.impute(rows, most_likely=True)
        for column in flow.columns_:
            flow.predict(rows, column.name)


def copied(folder: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return shutil.copytree(folder, to)


def description_of(folder: Path, name: str = DESCRIPTION) -> dict[str, Any]:
    return json.loads((folder / name).read_text())


def rewrite(folder: Path, description: dict[str, Any], name: str = DESCRIPTION) -> None:
    (folder / name).write_text(json.dumps(description))


def edit(folder: Path, path: str, value: Any) -> None:
    """Set "config.blocks", "layout.dtypes.0.dtype", ..."""
    description = description_of(folder)
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
    inner = description
    for part in parents:
        inner = inner[part]
    inner[last] = value
    rewrite(folder, description)


def change_weights(folder: Path, change: Any) -> None:
    """Change the tensors, and the checksum with them."""
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS)
    if (folder / DESCRIPTION).exists():
        edit(folder, "weights", sha256((folder / WEIGHTS).read_bytes()).hexdigest())


ODD = [None, True, False, -1, 0, 1, 2, 3, 10**7, 10**9, 10**30, -(10**9), 0.5, 1e300, float("nan"), float("inf")]
ODD += [5e-324, 1e38, -1e308, 2**63, -(2**63)]
ODD += ["", "x", "two\nlines", "show_versions", "int64", "Int64", "String", "object", "U999999999", "pandas", "polars"]
ODD += [[], {}, [[]], [1], [10**9], {"kind": "flow"}, {"date": "x"}, ["a", "a"], "autoregressive", "continuous", "date"]


def mutate(folder: Path, chance: random.Random, description: str = DESCRIPTION) -> None:
    """One to three random changes of a folder that is described in a file of that name."""
    acts = {_mutate_json: 8, _mutate_tensor: 3, _mutate_bytes: 1}
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        chance.choices(list(acts), list(acts.values()))[0](folder, chance, description)


def _places(inner: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a nested object."""
    keys = list(inner) if isinstance(inner, dict) else list(range(len(inner))) if isinstance(inner, list) else []
    return [place for key in keys for place in [(inner, key), *_places(inner[key])]]


def _mutate_json(folder: Path, chance: random.Random, name: str) -> None:
    try:
        description = description_of(folder, name)
    except ValueError:  # by bytes, before
        return
    sections = [section for section in SECTIONS if isinstance(description, dict) and section in description]
    if sections and chance.random() < 0.8:
        section = chance.choice(sections)
        places = [(description, section), *_places(description[section])]
    else:
        places = _places(description)
    if not places:
        return
    inner, key = chance.choice(places)
    other, where = chance.choice(places)
    act = chance.randrange(7)
    if act < 3:
        inner[key] = copy.deepcopy(chance.choice(ODD))
    elif act == 3:
        inner[key] = copy.deepcopy(other[where])
    elif act == 4:
        del inner[key]
    elif act == 5 and isinstance(inner, list):
        inner.insert(key, copy.deepcopy(inner[key]))
    elif isinstance(inner[key], int | float):
        inner[key] *= chance.choice([-1, 0, 2, 10, 1e6, 10**6])
    rewrite(folder, description, name)


def _mutate_tensor(folder: Path, chance: random.Random, _: str) -> None:
    try:
        change_weights(folder, lambda weights: _change_one(weights, chance))
    except Exception:  # the files were broken before
        return


def _change_one(weights: dict[str, torch.Tensor], chance: random.Random) -> None:
    name = chance.choice(sorted(weights))
    weight = weights[name].clone()
    act = chance.randrange(7)
    if act == 0:
        del weights[name]
        return
    if act == 1:
        weights[name] = weight[..., None].repeat(*[1] * weight.dim(), 2)
        return
    if weight.numel():
        place = chance.randrange(weight.numel())
        values = [float("nan"), float("inf"), -1.0, 0.0, 1e38, -1e38, 1e30, 1e8, -1e30, 1e-38, 3.0]
        number = chance.choice(values if weight.is_floating_point() else [-1, 0, 1, 7, 10**9])
        weight.view(-1)[place if act < 5 else slice(None)] = number
    weights[name] = weight


def _mutate_bytes(folder: Path, chance: random.Random, name: str) -> None:
    path = folder / chance.choice([WEIGHTS, name])
    content = bytearray(path.read_bytes())
    if chance.random() < 0.3:
        content = content[: chance.randrange(len(content) + 1)]
    elif content:
        for _ in range(chance.choice([1, 10])):
            content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(bytes(content))
