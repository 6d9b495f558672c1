"""Typed, nested configurations: frozen dataclasses, in which alternatives are classes of one family, known by name.

    FlowConfig(cells=VoronoiConfig(dim=2), noise=ConditionalNoise(blocks=2), density=CouplingConfig(blocks=8))

A family is its own registry: the name of an alternative stands where its class is defined, and nowhere else. Files say
it as "kind", and the command line as `--set model.cells=simplex`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["Choice", "changed", "checked", "from_json", "parse_changes", "to_json"]

Config = TypeVar("Config")


class Choice:
    """One of several ways to configure a part: a direct subclass is a family, its subclasses with a kind are members.

    >>> from dataclasses import dataclass
    >>> class Shape(Choice): ...
    >>> @dataclass(frozen=True)
    ... class Circle(Shape, kind="circle"):
    ...     radius: float = 1.0
    >>> Shape.kinds, Shape.named("circle")
    ({'circle': <class 'tessella.configs.Circle'>}, Circle(radius=1.0))
    """

    kinds: ClassVar[dict[str, Any]]
    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str = "", **rest: Any):
        super().__init_subclass__(**rest)
        if Choice in cls.__bases__:
            cls.kinds = {}
        elif kind:
            if kind in cls.kinds:
                raise TypeError(f"kind: got {kind!r} for {cls.__name__}, which {cls.kinds[kind].__name__} has already")
            cls.kind, cls.kinds[kind] = kind, cls

    @classmethod
    def named(cls, kind: str, **settings: Any) -> Self:
        """The member of that name, with these settings and the defaults of the others."""
        if kind not in cls.kinds:
            raise ValueError(f"{cls.__name__}: got {kind!r}; expected one of {', '.join(cls.kinds)}")
        member: Self = cls.kinds[kind](**settings)
        return member


def to_json(config: Any) -> Any:
    """A configuration in JSON's types; members of families say their kind.

    >>> from tessella.dequantizers import SimplexConfig
    >>> to_json(SimplexConfig(dim=3))
    {'kind': 'simplex', 'dim': 3}
    """
    if is_dataclass(config) and not isinstance(config, type):
        said = {"kind": config.kind} if isinstance(config, Choice) else {}
        return said | {field.name: to_json(getattr(config, field.name)) for field in fields(config)}
    return [to_json(value) for value in config] if isinstance(config, tuple | list) else config


def from_json(kind: type[Config], said: Any) -> Config:
    """The configuration of this class, or family, that `to_json` wrote.

    >>> from tessella.dequantizers import CellsConfig, SimplexConfig
    >>> from_json(CellsConfig, to_json(SimplexConfig(dim=3)))
    SimplexConfig(dim=3)
    """
    if not isinstance(said, Mapping):
        raise ValueError(f"{kind.__name__}: got {said!r}; expected an object with its fields")
    given = dict(said)
    if issubclass(kind, Choice):
        kind = type(kind.named(given.pop("kind", None)))
    # Whoever calls this has a dataclass, or a family, whose members are; the type checker has no word for both.
    hints, known = get_type_hints(kind), {field.name for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass, which types cannot say
    if unknown := sorted(set(given) - known):
        raise ValueError(f"{kind.__name__}: got {', '.join(unknown)}; expected {', '.join(sorted(known))}")
    return kind(**{name: _read(hints[name], value, name) for name, value in given.items()})


def _read(hint: Any, value: Any, name: str) -> Any:
    nested = [part for part in (hint, *get_args(hint)) if isinstance(part, type) and _is_config(part)]
    if nested and value is not None:
        return from_json(nested[0], value)
    return checked(hint, _tuples(value), name)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def checked(hint: Any, value: Any, name: str) -> Any:
    """The value, if it is of the type that a hint says.

    >>> checked(tuple[int, ...], (1, 2.5), "sizes")
    Traceback (most recent call last):
        ...
    ValueError: sizes: got (1, 2.5); expected tuple[int, ...]
    """
    if not _allowed(hint, value):
        expected = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
        raise ValueError(f"{name}: got {value!r:.80}; expected {expected.replace('typing.', '')}")
    return value


def _is_config(kind: type) -> bool:
    return is_dataclass(kind) or issubclass(kind, Choice)


def parse_changes(typed: Iterable[str]) -> dict[str, Any]:
    """["model.cells.dim=2", "model.cells=simplex"] -> {"model.cells.dim": 2, "model.cells": "simplex"}.

    >>> parse_changes(["model.components=[50, 100]", "training.progress=false"])
    {'model.components': [50, 100], 'training.progress': False}
    """
    changes = {}
    for text in typed:
        path, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"set: got {text!r}; expected FIELD=VALUE, e.g. model.cells.dim=2")
        try:
            changes[path] = json.loads(value)
        except json.JSONDecodeError:
            changes[path] = value
    return changes


def changed(config: Config, changes: Mapping[str, Any]) -> Config:
    """A copy with the named fields changed; what is not a field, or of another type than what it replaces, is an error.

    Another member of a family is given by its name, and keeps the fields that both have.

    >>> from tessella.models import FlowConfig
    >>> changed(FlowConfig(), {"cells.dim": 3, "cells": "laguerre"}).cells.dim
    3
    """
    for path, value in changes.items():
        config = _with(config, path.split("."), value, path)
    return config


def _with(config: Any, names: list[str], value: Any, path: str) -> Any:
    known = [field.name for field in fields(config)] if is_dataclass(config) else []
    name, *rest = names
    if name not in known:
        raise ValueError(f"set: {path!r}: {name!r} is no field here; expected one of {', '.join(known) or 'none'}")
    before, hint = getattr(config, name), get_type_hints(type(config))[name]
    after = _with(before, rest, value, path) if rest else _like(before, value, path, hint)
    return replace(config, **{name: after})


def _like(before: Any, value: Any, path: str, hint: Any) -> Any:
    """`value`, if it can stand where `before` stood: a name for a member of a family, a list for a tuple, ..."""
    if isinstance(before, Choice) and isinstance(value, str):
        # Members of families are dataclasses, which `Choice` cannot say.
        other = {field.name for field in fields(type(before).named(value))}  # type: ignore[arg-type]  # likewise
        return before.named(value, **{name: kept for name, kept in vars(before).items() if name in other})
    if isinstance(before, tuple) and isinstance(value, list):
        return tuple(value)
    if isinstance(before, float) and type(value) is int:
        return float(value)
    if type(value) is type(before) or _allowed(hint, value):
        return value
    raise ValueError(f"set: {path!r}: got {value!r}; expected a value like {before!r}")


def _allowed(hint: Any, value: Any) -> bool:
    """Whether a value is of a type: one of a union, of a few literals, a tuple or mapping of others.

    >>> _allowed(float | None, None), _allowed(Literal["root"] | float, 8), _allowed(int, 8.0), _allowed(float, True)
    (True, True, False, False)
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return any(value == part and type(value) is type(part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and _allowed_tuple(parts, value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_allowed(parts[1], inner) for inner in value.values())
    if origin is list:
        return isinstance(value, list) and all(_allowed(parts[0], inner) for inner in value)
    if parts:
        return any(_allowed(part, value) for part in parts)
    return hint is Any or type(value) is hint or (hint is float and type(value) is int)


def _allowed_tuple(parts: tuple[Any, ...], values: tuple[Any, ...]) -> bool:
    if parts[-1] is Ellipsis:
        return all(_allowed(parts[0], value) for value in values)
    return len(parts) == len(values) and all(map(_allowed, parts, values))
