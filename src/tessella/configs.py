"""Fields of nested configurations changed by their names: {"model.dim": 2}, or "model.dim=2" as it is typed."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

Config = TypeVar("Config")


def parse_changes(typed: Iterable[str]) -> dict[str, Any]:
    """["model.dim=2", "model.noise_base=ball"] -> {"model.dim": 2, "model.noise_base": "ball"}.

    >>> parse_changes(["model.components=[50, 100]", "training.progress=false"])
    {'model.components': [50, 100], 'training.progress': False}
    """
    changes = {}
    for text in typed:
        path, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"set: got {text!r}; expected FIELD=VALUE, e.g. model.dim=2")
        try:
            changes[path] = json.loads(value)
        except json.JSONDecodeError:
            changes[path] = value
    return changes


def changed(config: Config, changes: Mapping[str, Any]) -> Config:
    """A copy with the named fields changed; what is not a field, or of another type than what it replaces, is an error.

    >>> from tessella.runs import RunConfig
    >>> changed(RunConfig(), {"model.dim": 2, "data.name": "mushroom"}).model.dim
    2
    """
    for path, value in changes.items():
        config = _with(config, path.split("."), value, path)
    return config


def _with(config: Any, names: list[str], value: Any, path: str) -> Any:
    known = [field.name for field in fields(config)] if is_dataclass(config) else []
    name, *rest = names
    if name not in known:
        raise ValueError(f"set: {path!r}: {name!r} is no field here; expected one of {', '.join(known) or 'none'}")
    before = getattr(config, name)
    after = _with(before, rest, value, path) if rest else _like(before, value, path)
    return replace(config, **{name: after})


def _like(before: Any, value: Any, path: str) -> Any:
    """`value`, if it can stand where `before` stood: a list for a tuple, an integer for a real number."""
    if isinstance(before, tuple) and isinstance(value, list):
        return tuple(value)
    if isinstance(before, float) and type(value) is int:
        return float(value)
    if before is None or type(value) is type(before):
        return value
    raise ValueError(f"set: {path!r}: got {value!r}; expected a value like {before!r}")
