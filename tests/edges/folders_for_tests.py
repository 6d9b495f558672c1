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

from tessella import MixtureFlow, TabularFlow
from tessella.estimators.saving import DESCRIPTION, WEIGHTS

ROWS = 60
LEGACY = Path(__file__).parents[1] / "legacy" / "0.1.0"
LIBRARY = {"autoregressive": "pandas", "blocks": "polars", "coupling": "pyarrow", "mixture": "polars"}
SECTIONS = ["config", "columns", "layout", "codes", "fitted", "params", "arrays"]
DENSITIES = ["autoregressive", "blocks", "coupling", "mixture", "array", "vectors", "gaussians"]


def table_of(density: str) -> Any:
    columns = mixed_columns(ROWS)
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
    else:
        kind = {"mixture": "auto", "array": "autoregressive"}.get(density, density)
        flow = small_flow(density=kind, max_steps=1).fit(table_of(density))
        assert density in ("array", flow.density_)
        flow.save(folder)


def loaded(folder: Path, density: str) -> TabularFlow | MixtureFlow:
    return (MixtureFlow if density in ("vectors", "gaussians") else TabularFlow).load(folder, device="cpu")


def use(flow: TabularFlow | MixtureFlow, density: str) -> None:
    """Draw, score."""
    flow.sample(3)
    flow.score_samples(table_of(density)[:2])


def copied(folder: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return shutil.copytree(folder, to)


def description_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / DESCRIPTION).read_text())


def rewrite(folder: Path, description: dict[str, Any]) -> None:
    (folder / DESCRIPTION).write_text(json.dumps(description))


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
    edit(folder, "weights", sha256((folder / WEIGHTS).read_bytes()).hexdigest())


ODD = [None, True, False, -1, 0, 1, 2, 3, 10**7, 10**9, 10**30, -(10**9), 0.5, 1e300, float("nan"), float("inf")]
ODD += ["", "x", "two\nlines", "show_versions", "int64", "Int64", "String", "object", "U999999999", "pandas", "polars"]
ODD += [[], {}, [[]], [1], [10**9], {"kind": "flow"}, {"date": "x"}, ["a", "a"], "autoregressive", "continuous", "date"]


def mutate(folder: Path, chance: random.Random) -> None:
    """One to three random changes of a folder."""
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        chance.choices([_mutate_json, _mutate_tensor, _mutate_bytes], [8, 3, 1])[0](folder, chance)


def _places(inner: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a nested object."""
    keys = list(inner) if isinstance(inner, dict) else list(range(len(inner))) if isinstance(inner, list) else []
    return [place for key in keys for place in [(inner, key), *_places(inner[key])]]


def _mutate_json(folder: Path, chance: random.Random) -> None:
    try:
        description = description_of(folder)
    except ValueError:  # by bytes, before
        return
    sections = [name for name in SECTIONS if isinstance(description, dict) and name in description]
    if sections and chance.random() < 0.8:  # each section alike, however many entries it has
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
    rewrite(folder, description)


def _mutate_tensor(folder: Path, chance: random.Random) -> None:
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
        values = [float("nan"), float("inf"), -1.0, 0.0, 1e30, 1e8, -1e30, 3.0]
        number = chance.choice(values if weight.is_floating_point() else [-1, 0, 1, 7, 10**9])
        weight.view(-1)[place if act < 5 else slice(None)] = number
    weights[name] = weight


def _mutate_bytes(folder: Path, chance: random.Random) -> None:
    path = folder / chance.choice([WEIGHTS, DESCRIPTION])
    content = bytearray(path.read_bytes())
    if chance.random() < 0.3:
        content = content[: chance.randrange(len(content) + 1)]
    elif content:
        for _ in range(chance.choice([1, 10])):
            content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(bytes(content))
