"""A model from its description and its saved weights, neither of which is believed.

A description can ask for anything: ten million blocks, a network of a hundred gigabytes. What it may ask for is bounded
by the weights that came with it, before and while the model is built. Weights can be numbers and still no model's:
`sound` says so where one computes with them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tessella.checks import NotFiniteError
from tessella.contracts import Indexing

M = TypeVar("M", bound=nn.Module)

SMALL = 1000  # a size that may be larger than any weight: iterations, bins at most
MOST = {"orders": 256}  # sizes that no weight shows
CALLS, SPARE_CALLS = 200, 20_000  # of torch while building: for each weight, and in any case
LARGEST = 1e6  # parameter, either way: training makes none that is nearly as large
TIMES, SPARE = 4, 2**22  # elements made while building: times those of the weights, and in any case
NOT_FINITE = ("probability tensor contains either", "sum of probabilities <= 0")
"""What torch says where it is asked to draw from numbers that are not."""


class DamagedModelError(ArithmeticError):
    """A model's numbers are not finite."""

    def __init__(self, what: str):
        super().__init__(f"{what}; the model's weights are damaged, or its training diverged")


@contextmanager
def sound(what: str) -> Iterator[None]:
    """While a model computes with what was checked before: where that comes to no numbers, a `DamagedModelError`.

    A draw of numbers that are NaN lies beyond every table, so an index may be what shows it.

    Args:
        what: is computed, for the message.
    """
    try:
        yield
    except (IndexError, NotFiniteError) as error:
        raise DamagedModelError(f"{what}: got numbers that are not finite") from error
    except RuntimeError as error:
        if not any(said in str(error) for said in NOT_FINITE):
            raise
        raise DamagedModelError(f"{what}: got probabilities that are not finite") from error


def restored(build: Callable[[], M], description: Any, weights: Mapping[str, Tensor]) -> M:
    """The model that `build` makes, with these weights; or a ValueError that says what does not fit.

    Args:
        build: from the description; it is stopped where it makes much more than there are weights.
        description: in JSON's types; every size in it is looked at first.
        weights: of the model.
    """
    _check_sizes(description, weights)
    with _Budget(weights):
        model = build()
    _check_weights(model.state_dict(), weights)
    model.load_state_dict(weights)
    _check_parameters(model)
    for module in model.modules():
        if isinstance(module, Indexing):
            module.check_tables()
    return model


def _check_sizes(description: Any, weights: Mapping[str, Tensor], name: str = "config") -> None:
    """No size is negative, or larger than every dimension of the weights and their number."""
    if isinstance(description, Mapping):
        for key, value in description.items():
            _check_sizes(value, weights, key)
    elif isinstance(description, list):
        for value in description:
            _check_sizes(value, weights, name)
    elif type(description) is int:
        sizes = (size for weight in weights.values() for size in weight.shape)
        most = MOST.get(name) or max(SMALL, len(weights), *sizes)
        if not 0 <= description <= most:
            raise ValueError(f"{name}: got {description}; expected at most {most}, as the weights are")


def _check_weights(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    """The same names, shapes and types; no NaN, and infinity only where a model has it before it learns."""
    if different := sorted(set(expected) ^ set(weights)):
        came, wanted = ("a weight", "none") if different[0] in weights else ("no weight", "one")
        more = f", and {len(different) - 1} more differ" if different[1:] else ""
        raise ValueError(f"weight {different[0]!r}: got {came}; expected {wanted} of this description{more}")
    for name, weight in sorted(weights.items()):
        like = expected[name]
        if weight.shape != like.shape or weight.is_floating_point() != like.is_floating_point():
            came, wanted = (f"{tuple(one.shape)} of {one.dtype}" for one in (weight, like))
            raise ValueError(f"weight {name!r}: got {came}; expected {wanted}")
        bad = int((~weight.isfinite() & (weight != like)).sum())
        if bad:
            raise ValueError(
                f"weight {name!r}: got {bad} NaN or infinite numbers of {weight.numel()}; expected finite ones"
            )


def _check_parameters(model: nn.Module) -> None:
    """Parameters are of a size that training can make of them: products of larger ones overflow."""
    for name, parameter in model.named_parameters():
        finite = parameter.detach()[parameter.isfinite()]  # of the others, see `_check_weights`
        if len(finite) and (largest := float(finite.abs().max())) > LARGEST:
            raise ValueError(f"weight {name!r}: got {largest:.3g} or its negative; expected at most {LARGEST:.0e}")


class _Budget(TorchDispatchMode):
    """While entered, this thread makes no more new tensors, nor larger ones, than a model of such weights needs."""

    def __init__(self, weights: Mapping[str, Tensor]):
        super().__init__()
        self.calls = SPARE_CALLS + CALLS * len(weights)
        self.elements = SPARE + TIMES * sum(weight.numel() for weight in weights.values())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls -= 1
        self.elements -= _made(func.__name__.partition(".")[0], args)
        if min(self.calls, self.elements) < 0:
            raise ValueError("config: describes a much larger model than the weights are of")
        return func(*args, **(kwargs or {}))


def _made(operation: str, args: Any) -> int:
    """Elements that an operation makes of nothing, at most: the product of the numbers that it is given."""
    leaves = tree_leaves(args)
    tensors = [one for one in leaves if isinstance(one, Tensor)]
    if tensors and operation != "repeat" and not operation.startswith("new_"):
        return 0
    times = tensors[0].numel() if operation == "repeat" else 1
    return times * prod(max(1, one) for one in leaves if type(one) is int)
