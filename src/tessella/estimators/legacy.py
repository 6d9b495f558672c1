"""Estimators that version 0.1.0 saved, in format 2, and mixtures that were saved without their config."""

from typing import Any

from torch import Tensor

from tessella.configs import to_json
from tessella.densities import DisjointMixtureConfig
from tessella.dequantizers import ConditionalNoise
from tessella.estimators.settings import BELONGS
from tessella.models import BlocksConfig, CategoricalMixtureConfig, MixtureStartConfig, TableConfig

FORMAT = 2


def upgraded(description: dict[str, Any], weights: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Description and weights of format 2, or of an older format 3 -> those of format 3.

    Components were called classes; the model was described by settings of the estimator alone; the maps of numbers lay
    beside the cells, and were there, empty, also where a table had no numbers.
    """
    if description["estimator"] == "MixtureFlow" and "config" not in description:
        return _with_config(description), weights
    if description["estimator"] != "TabularFlow":
        return description, weights
    if description["format"] != FORMAT:
        return _with_density(description), weights
    params, fitted = dict(description["params"]), dict(description["fitted"])
    params["components"], fitted["components_"] = params.pop("classes"), fitted.pop("classes_")
    config = to_json(_config(params, fitted))
    renamed = {_renamed(name): weight for name, weight in weights.items() if weight.numel()}
    return _with_density({**description, "params": params, "fitted": fitted, "config": config}), renamed


def _with_density(description: dict[str, Any]) -> dict[str, Any]:
    """Whether there were groups of columns said the density, and settings of the other were there, unused."""
    params, fitted = dict(description["params"]), description["fitted"]
    if "density" in params:
        return description
    params["density"] = "blocks" if fitted["density_"] == "blocks" else "coupling"
    unused = {name for name, density in BELONGS.items() if density != params["density"]}
    return {**description, "params": params | dict.fromkeys(unused)}


def _with_config(description: dict[str, Any]) -> dict[str, Any]:
    """What a `MixtureFlow` was before it started from Gaussians: affine couplings before root cells and inside them."""
    params, fitted = description["params"], dict(description["fitted"])
    blocks = params["blocks"]
    config = DisjointMixtureConfig(
        cells=params["components"], blocks=blocks, component_blocks=blocks, width=params["width"], squashing="root"
    )
    fitted |= {"density_": "flow", "initial_validation_": fitted["history_"][0]["validation"]}
    return {**description, "fitted": fitted, "config": to_json(config)}


def _config(params: dict[str, Any], fitted: dict[str, Any]) -> TableConfig:
    """What 0.1.0 built of its settings."""
    components, width = fitted["components_"], params["width"]
    if fitted["density_"] == "mixture":
        return CategoricalMixtureConfig((components,))
    if fitted["density_"] == "blocks":
        return BlocksConfig(fitted["groups_"], components, 2 * width, layers=2, dropout=0.0, fast=False)
    return MixtureStartConfig(
        dim=params["dim"],
        components=components - 1,  # the background is one more
        blocks=params["blocks"],
        width=width,
        layers=1,
        squashing="root",
        noise=ConditionalNoise(blocks=2, width=width, layers=1, base="gaussian", context=32),
        fast=False,
        train_samples=4,
        validation_samples=4,
    )


def _renamed(name: str) -> str:
    """The name of a weight in format 3.

    >>> _renamed("dequantizer.scale.t")
    'dequantizer.numbers.scale.t'
    """
    return name.replace("dequantizer.scale.", "dequantizer.numbers.scale.")
